import {
  bucketCount, type Route, type RouteRollout, type RouteTarget, type RoutingTable, type TableKey, type TableServer,
} from '@perch/contracts'; // biome-ignore format: one list
import { seedOf } from './bucket.decide.ts';

/** One side of a split. Parts lie behind one another; `until` is the end of its part of [0, 1), `untilBucket` of the buckets. */
export interface CompiledArm {
  target: RouteTarget;
  share: number;
  until: number;
  untilBucket: number;
}

/** One user stays on one arm: by this header's value (name in small letters) hashed with `seed`. */
export interface CompiledSticky {
  header: string;
  seed: number;
}

/** A candidate on trial whose both sides this router can serve: only then is it judged here. */
export interface CompiledRollout {
  spec: RouteRollout;
  stable: RouteTarget;
  candidate: RouteTarget;
}

/** A route as requests read it: nothing in it is searched, only looked up. */
export interface CompiledRoute {
  name: string;
  route: Route;
  /** Shares add to 1; empty when no target with a share is usable. */
  arms: readonly CompiledArm[];
  /** Every usable target: those with a share first, heaviest first, then the others, newest version first. */
  targets: readonly RouteTarget[];
  /** Of two with one version: stable's, else the one with the greater share. */
  byVersion: ReadonlyMap<number, RouteTarget>;
  sticky: CompiledSticky | undefined;
  rollout: CompiledRollout | undefined;
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

type Order = (a: CompiledArm, b: CompiledArm) => number;

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The loop over arms ends soonest. */
const heaviestFirst: Order = (a, b) => b.share - a.share || b.target.version - a.target.version;

/** The candidate owns the lowest part; beyond that the order depends on no share, so that a new weight moves few keys. */
function steadily({ rollout }: Route): Order {
  const isCandidate = ({ target }: CompiledArm) => Number(target.deployment === rollout?.candidate);
  return (a, b) =>
    isCandidate(b) - isCandidate(a) ||
    byText(a.target.endpoint ?? '', b.target.endpoint ?? '') ||
    b.target.version - a.target.version ||
    byText(a.target.deployment, b.target.deployment);
}

/** The share of an arm whose target is missing or not usable goes to stable, else to the heaviest of those that remain. */
function compileArms(route: Route, usable: ReadonlyMap<string, RouteTarget>): CompiledArm[] {
  let lost = 0;
  const arms: CompiledArm[] = [];
  for (const { deployment, share } of route.arms) {
    const target = usable.get(deployment);
    if (!target) lost += share;
    else if (share > 0) arms.push({ target, share, until: 0, untilBucket: 0 });
  }
  arms.sort(heaviestFirst);
  const heir = arms.find(({ target }) => target.deployment === route.rollout?.stable) ?? arms[0];
  if (heir) heir.share += lost;
  if (route.sticky || route.rollout) arms.sort(steadily(route));
  let until = 0;
  let untilBucket = 0;
  arms.forEach((arm, place) => {
    until = place === arms.length - 1 ? 1 : until + arm.share;
    // every arm keeps a bucket of its own, however small its share
    untilBucket = Math.max(
      untilBucket + 1,
      Math.min(Math.round(until * bucketCount), bucketCount - arms.length + place + 1),
    );
    arm.until = until;
    arm.untilBucket = untilBucket;
  });
  return arms;
}

function compileRollout({ rollout }: Route, usable: ReadonlyMap<string, RouteTarget>): CompiledRollout | undefined {
  const stable = rollout && usable.get(rollout.stable);
  const candidate = rollout && usable.get(rollout.candidate);
  return stable && candidate && { spec: rollout, stable, candidate };
}

export function compileRoute(name: string, route: Route, isUsable: IsUsable = () => true): CompiledRoute {
  const usable = new Map<string, RouteTarget>();
  for (const target of route.targets) if (isUsable(target)) usable.set(target.deployment, target);
  const arms = compileArms(route, usable);
  const split = [...arms].sort(heaviestFirst).map((arm) => arm.target);
  const rest = [...usable.values()].filter((target) => !split.includes(target)).sort((a, b) => b.version - a.version);
  const targets = [...split, ...rest];
  const byVersion = new Map<number, RouteTarget>();
  const rollout = compileRollout(route, usable);
  if (rollout) byVersion.set(rollout.stable.version, rollout.stable);
  for (const target of targets) if (!byVersion.has(target.version)) byVersion.set(target.version, target);
  const sticky = route.sticky && {
    header: route.sticky.header.toLowerCase(),
    seed: seedOf(route.rollout?.salt ?? route.sticky.salt),
  };
  return { name, route, arms, targets, byVersion, sticky, rollout };
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
