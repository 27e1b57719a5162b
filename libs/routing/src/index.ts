export { mayCall } from './access.decide.ts';
export { pickServer, pickTarget } from './pick.decide.ts';
export { type FoundRoute, readVersion, resolveServe } from './serve-path.ts';
export {
  type CompiledArm,
  type CompiledRoute,
  type CompiledTable,
  compileRoute,
  compileTable,
  type IsUsable,
  indexKeys,
} from './table.ts';
