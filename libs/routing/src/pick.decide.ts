import type { RouteTarget } from '@perch/contracts';
import type { CompiledRoute } from './table.ts';

/** What decides where one request goes, beside the table: with the same of both it goes to the same arm. */
export interface Chance {
  /** Uniform in [0, 1). */
  draw: number;
  /** Of the request's sticky key; -1: it has none, or the route wants none. */
  bucket: number;
  /** The control plane was not heard for too long: a candidate gets nothing. */
  lapsed: boolean;
}

/**
 * The target that one request goes to. With `pin` it is that version or undefined; without, the arm that its bucket or
 * draw falls into, or the newest usable target when no arm is left.
 */
export function pickTarget(route: CompiledRoute, chance: Chance, pin?: number): RouteTarget | undefined {
  if (pin !== undefined) return route.byVersion.get(pin);
  if (chance.lapsed && route.rollout) return route.rollout.stable;
  const { draw, bucket } = chance;
  for (const arm of route.arms) if (bucket < 0 ? draw < arm.until : bucket < arm.untilBucket) return arm.target;
  return route.targets[0];
}

/** Fewest outstanding of two random ones: near the best spread without looking at all. `random` is uniform in [0, 1). */
export function pickServer<T>(
  servers: readonly T[],
  outstanding: (server: T) => number,
  random: () => number,
): T | undefined {
  const count = servers.length;
  if (count < 2) return servers[0];
  const first = Math.floor(random() * count);
  let second = Math.floor(random() * (count - 1));
  if (second >= first) second += 1;
  const a = servers[first]!;
  const b = servers[second]!;
  return outstanding(b) < outstanding(a) ? b : a;
}
