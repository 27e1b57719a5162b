export { mayCall } from './access.decide.ts';
export { bucketOf, hashText, seedOf } from './bucket.decide.ts';
export { type Chance, pickServer, pickTarget } from './pick.decide.ts';
export { type FoundRoute, readVersion, resolveServe } from './serve-path.ts';
export {
  type CompiledArm,
  type CompiledRollout,
  type CompiledRoute,
  type CompiledSticky,
  type CompiledTable,
  compileRoute,
  compileTable,
  type IsUsable,
  indexKeys,
} from './table.ts';
