import { allowedGap } from './margin.decide.ts';
import { promotionBounds } from './promotion-bounds.decide.ts';
import { backToStable, leastCandidateEvents } from './rollback.decide.ts';
import { type Outcome, type Sight, stay } from './sight.ts';
import { duration, percent } from './words.ts';

/**
 * Stable's upper bound over the whole rollout plus the margin. Under a sticky key a longer epoch gives each user more
 * chances of an event, so the bake's own stable users count as well: the larger bound of both.
 */
function ceiling({ input }: Sight, at: number): number {
  const { whole, stable, margin } = input.metrics[at]!;
  const over = whole?.stable ?? stable;
  const { lower, upper } = promotionBounds(over.x, over.n, input.policy.promotionAlpha);
  const now = promotionBounds(stable.x, stable.n, input.policy.promotionAlpha).upper;
  return (input.unit === 'bucket' ? Math.max(upper, now) : upper) + allowedGap(margin, lower);
}

/**
 * The candidate has nearly all traffic and stable 1 % beside it. Besides E, it goes back when the candidate's lower bound in
 * the bake exceeds stable's upper bound in the rollout plus the margin; else it is promoted when the time is over.
 */
export function decideBake(sight: Sight): Outcome {
  const { policy, sinceStepMs, holds = [] } = sight.input;
  const worse = sight.readings.find(
    ({ candidate }, at) => candidate.x >= leastCandidateEvents && candidate.lower > ceiling(sight, at),
  );
  if (worse)
    return backToStable([
      `In the bake ${worse.metric} of the candidate is at least ${percent(worse.candidate.lower)}, above what stable showed in the rollout plus the margin.`,
    ]);
  const leftMs = policy.bakeMs - sinceStepMs;
  if (leftMs > 0) return stay(sight, 'hold', [`The bake lasts ${duration(leftMs)} more.`], leftMs);
  if (holds.length > 0) return stay(sight, 'hold', [...holds], null);
  return {
    verdict: 'advance',
    next: 'promote',
    share: 1,
    reasons: ['The bake is over and nothing spoke against the candidate.'],
    nextStepInMs: null,
  };
}
