import type { Margin, RolloutPolicy } from '@perch/contracts';
import { firstTime } from './prediction.decide.ts';
import { bakeShare, clockStepMs, firstShare, nextShare, sharesOf } from './ramp.decide.ts';
import { provedWithin, readGap } from './reading.decide.ts';

export interface ExpectedTraffic {
  /** All arms. */
  requestsPerMinute: number;
  /** Share of requests with the event, the same in both arms. */
  rate: number;
}

/**
 * How long a version equal to stable takes to its bake if counts come out as expected; null: longer than 30 days. `margin`
 * is that of the one metric looked at.
 */
export function expectedPromotionMs(policy: RolloutPolicy, margin: Margin, traffic: ExpectedTraffic): number | null {
  const { requestsPerMinute, rate } = traffic;
  if (requestsPerMinute <= 0) return null;
  const last = sharesOf(policy).at(-1)!;
  let share = firstShare(policy, requestsPerMinute);
  let totalMs = 0;
  while (share < bakeShare) {
    const after = (ms: number) => stepAfter(policy, share, last, margin, { requestsPerMinute, rate }, ms);
    const stepMs = clockStepMs(policy, share) ?? firstTime(policy.dwellMs, (ms) => after(ms) > share);
    if (stepMs === null) return null;
    totalMs += stepMs;
    share = after(stepMs);
  }
  return totalMs;
}

function stepAfter(
  policy: RolloutPolicy,
  share: number,
  last: number,
  margin: Margin,
  traffic: ExpectedTraffic,
  ms: number,
): number {
  // biome-ignore format: one list
  const requests = (traffic.requestsPerMinute * ms) / 60_000;
  const arm = (part: number) => ({ n: part * requests, x: part * requests * traffic.rate });
  const reading = readGap({ margin, stable: arm(1 - share), candidate: arm(share) }, policy.promotionAlpha);
  const mayBake = policy.ramp === 'auto' || share >= last;
  if (mayBake && (policy.ramp === 'clock' || provedWithin([reading]))) return bakeShare;
  return nextShare(policy, share, [reading], traffic.requestsPerMinute);
}

/**
 * The smallest margin, in points, that traffic as measured can prove within `withinMs`: for `margin: auto`. Null: not even
 * a margin of 100 points could be.
 */
export function smallestMargin(policy: RolloutPolicy, traffic: ExpectedTraffic, withinMs: number): Margin | null {
  const provable = (absolute: number) => {
    const neededMs = expectedPromotionMs(policy, { absolute, relative: 0 }, traffic);
    return neededMs !== null && neededMs <= withinMs;
  };
  if (!provable(1)) return null;
  let low = -13.8; // ln of a millionth
  let high = 0;
  for (let turn = 0; turn < 20; turn += 1) {
    const middle = (low + high) / 2;
    if (provable(Math.exp(middle))) high = middle;
    else low = middle;
  }
  return { absolute: Math.exp(high), relative: 0 };
}
