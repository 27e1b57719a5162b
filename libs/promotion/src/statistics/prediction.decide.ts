import { bucketsOf, type DecisionInput, type MetricInput } from '@perch/contracts';
import { nextShare } from './ramp.decide.ts';
import { type GapReading, provedWithin, readGap } from './reading.decide.ts';

/** Beyond this a prediction says nothing. */
const horizonMs = 30 * 24 * 3_600_000;
const halvings = 5;

/**
 * The first time from `fromMs` on at which `holds` does, to a few hundredths, for a condition that stays true once it is;
 * null: not within 30 days.
 */
export function firstTime(fromMs: number, holds: (ms: number) => boolean): number | null {
  if (holds(fromMs)) return fromMs;
  let low = Math.max(fromMs, 15_000);
  while (!holds(low * 2)) {
    low *= 2;
    if (low > horizonMs) return null;
  }
  let high = low * 2;
  for (let turn = 0; turn < halvings; turn += 1) {
    const middle = (low + high) / 2;
    if (holds(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** An arm's counts `aheadMs` later, its rate of events unchanged; under a sticky key no more buckets than the arm owns. */
function grow(counts: { n: number; x: number }, added: number, most: number) {
  const n = Math.max(counts.n, Math.min(counts.n + added, most));
  return { n, x: counts.n > 0 ? (counts.x / counts.n) * n : 0 };
}

function metricsAhead(input: DecisionInput, aheadMs: number): Pick<MetricInput, 'stable' | 'candidate' | 'margin'>[] {
  const { share, unit, requestsPerMinuteNow, sinceStepMs } = input;
  const requests = (requestsPerMinuteNow * aheadMs) / 60_000;
  const owned = unit === 'bucket' ? bucketsOf(share) : Number.POSITIVE_INFINITY;
  const others = unit === 'bucket' ? bucketsOf(1) - bucketsOf(share) : Number.POSITIVE_INFINITY;
  const added = (n: number, part: number) =>
    unit === 'bucket' ? (n * aheadMs) / Math.max(sinceStepMs, 1) : part * requests;
  return input.metrics.map(({ margin, stable, candidate }) => ({
    margin,
    stable: grow(stable, added(stable.n, 1 - share), others),
    candidate: grow(candidate, added(candidate.n, share), owned),
  }));
}

/**
 * When evidence is expected to allow the next step if traffic and both rates stay as they are, from now on; never before
 * `dwellMs` is over. Null: cannot be said (no traffic), or not within 30 days.
 */
export function predictNextStepMs(input: DecisionInput): number | null {
  const { policy, share } = input;
  if (input.requestsPerMinuteNow <= 0 || share <= 0 || input.metrics.length === 0) return null;
  const requestsPerMinute = Math.max(input.requestsPerMinute, input.requestsPerMinuteNow);
  const allowed = (aheadMs: number) => {
    const readings: GapReading[] = metricsAhead(input, aheadMs).map((metric) => readGap(metric, policy.promotionAlpha));
    return provedWithin(readings) || nextShare(policy, share, readings, requestsPerMinute) > share;
  };
  return firstTime(Math.max(0, policy.dwellMs - input.sinceStepMs), allowed);
}
