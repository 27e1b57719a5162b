import type { Route, RouteTarget, RoutingTable, TableKey, TableServer } from '@perch/contracts';

/** One side of a split. `until` is the end of its part of [0, 1); parts lie behind one another, heaviest first. */
export interface CompiledArm {
  target: RouteTarget;
  share: number;
  until: number;
}

/** A route as requests read it: nothing in it is searched, only looked up. */
export interface CompiledRoute {
  name: string;
  route: Route;
  /** Shares add to 1; empty when no target with a share is usable. */
  arms: readonly CompiledArm[];
  /** Every usable target: those with a share first, heaviest first, then the others, newest version first. */
  targets: readonly RouteTarget[];
  byVersion: ReadonlyMap<number, RouteTarget>;
}

/** Routes, servers and keys of one routing table. Keys by the SHA-256 (hex) of their secret. */
export interface CompiledTable {
  lineage: string;
  revision: number;
  endpoints: ReadonlyMap<string, CompiledRoute>;
  servers: ReadonlyMap<string, TableServer>;
  keys: ReadonlyMap<string, TableKey>;
}

/** Says whether this process can serve a target (its processing is prepared). */
export type IsUsable = (target: RouteTarget) => boolean;

const heaviestFirst = (a: CompiledArm, b: CompiledArm): number =>
  b.share - a.share || b.target.version - a.target.version;

/** The share of an arm whose target is missing or not usable goes to the heaviest of those that remain. */
function compileArms(route: Route, usable: ReadonlyMap<string, RouteTarget>): CompiledArm[] {
  let lost = 0;
  const arms: CompiledArm[] = [];
  for (const { deployment, share } of route.arms) {
    const target = usable.get(deployment);
    if (!target) lost += share;
    else if (share > 0) arms.push({ target, share, until: 0 });
  }
  arms.sort(heaviestFirst);
  if (arms[0]) arms[0].share += lost;
  let until = 0;
  for (const arm of arms) {
    until += arm.share;
    arm.until = until;
  }
  const last = arms.at(-1);
  if (last) last.until = 1;
  return arms;
}

export function compileRoute(name: string, route: Route, isUsable: IsUsable = () => true): CompiledRoute {
  const usable = new Map<string, RouteTarget>();
  for (const target of route.targets) if (isUsable(target)) usable.set(target.deployment, target);
  const arms = compileArms(route, usable);
  const split = arms.map((arm) => arm.target);
  const rest = [...usable.values()].filter((target) => !split.includes(target)).sort((a, b) => b.version - a.version);
  const targets = [...split, ...rest];
  const byVersion = new Map<number, RouteTarget>();
  for (const target of targets) if (!byVersion.has(target.version)) byVersion.set(target.version, target);
  return { name, route, arms, targets, byVersion };
}

/** All at once; a program with a big table compiles route by route between turns of its event loop instead. */
export function compileTable(table: RoutingTable, isUsable?: IsUsable): CompiledTable {
  const endpoints = new Map<string, CompiledRoute>();
  for (const [name, route] of Object.entries(table.endpoints)) endpoints.set(name, compileRoute(name, route, isUsable));
  return {
    lineage: table.lineage,
    revision: table.revision,
    endpoints,
    servers: new Map(Object.entries(table.servers)),
    keys: indexKeys(table.keys),
  };
}

export const indexKeys = (keys: RoutingTable['keys']): Map<string, TableKey> =>
  new Map(Object.values(keys).map((key) => [key.hash, key]));
