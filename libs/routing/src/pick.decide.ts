import type { RouteTarget } from '@perch/contracts';
import type { CompiledRoute } from './table.ts';

/**
 * The target that one request goes to. `draw` is uniform in [0, 1). With `pin` it is that version or undefined; without,
 * the arm the draw falls into, or the newest usable target when no arm is left.
 */
export function pickTarget(route: CompiledRoute, draw: number, pin?: number): RouteTarget | undefined {
  if (pin !== undefined) return route.byVersion.get(pin);
  for (const arm of route.arms) if (draw < arm.until) return arm.target;
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
