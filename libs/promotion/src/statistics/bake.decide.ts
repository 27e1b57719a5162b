import type { MetricInput } from '@perch/contracts';
import { allowedGap } from './margin.decide.ts';
import { type Bounds, promotionBounds } from './promotion-bounds.decide.ts';
import { backToStable, leastCandidateEvents } from './rollback.decide.ts';
import { type Outcome, type Sight, stay } from './sight.ts';
import { duration, percent } from './words.ts';

/** What a bake compares of one metric; `stable` and `candidate` are of the bake alone, with their bounds. */
export interface BakeReading {
  stable: { n: number; x: number } & Bounds;
  candidate: { n: number; x: number } & Bounds;
}

/**
 * The candidate's lower bound in the bake exceeds stable's upper bound in the rollout plus the margin. Under a sticky key a
 * longer epoch gives each user more chances of an event, so there the bake's own stable users count too: the larger bound.
 */
export function worseInBake(
  reading: BakeReading,
  { whole, margin }: Pick<MetricInput, 'whole' | 'margin'>,
  unit: 'request' | 'bucket',
  a: number,
): boolean {
  if (reading.candidate.x < leastCandidateEvents) return false;
  const over = whole?.stable ?? reading.stable;
  const { lower, upper } = promotionBounds(over.x, over.n, a);
  const ceiling = unit === 'bucket' ? Math.max(upper, reading.stable.upper) : upper;
  return reading.candidate.lower > ceiling + allowedGap(margin, lower);
}

/** The candidate has nearly all traffic and stable 1 % beside it; promoted when the time is over. */
export function decideBake(sight: Sight): Outcome {
  const { policy, sinceStepMs, holds = [], metrics, unit } = sight.input;
  const worse = sight.readings.find((reading, at) => worseInBake(reading, metrics[at]!, unit, policy.promotionAlpha));
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
