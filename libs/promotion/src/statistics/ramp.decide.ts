import type { RolloutPolicy } from '@perch/contracts';
import type { GapReading } from './reading.decide.ts';

/** Share of the candidate in a bake: stable keeps 1 % as the concurrent baseline. */
export const bakeShare = 0.99;
/** On a quiet endpoint the ramp `auto` starts here, if bad requests of that share are within the budget. */
const mostFirstShare = 0.05;
/** A weight falls back only when what was risked has grown to this many budgets. */
const budgetsBeforeDrop = 4;

/** The shares that the policy goes through, as fractions, rising. */
export const sharesOf = (policy: RolloutPolicy): number[] =>
  (policy.ramp === 'clock' && policy.clock
    ? policy.clock.map((step) => step.weightPercent)
    : policy.weightsPercent
  ).map((percent) => percent / 100);

const above = (shares: readonly number[], share: number) => shares.filter((next) => next > share);

/**
 * The share to begin with. Ramp `auto`: the smallest, or up to 5 % on an endpoint so quiet that even a version that always
 * fails stays within the budget of bad requests. `requestsPerMinute`: the busiest minute of the last day, all arms.
 */
export function firstShare(policy: RolloutPolicy, requestsPerMinute: number): number {
  const shares = sharesOf(policy);
  if (policy.ramp !== 'auto') return shares[0]!;
  const quiet = shares.filter((w) => w <= mostFirstShare && w * requestsPerMinute <= policy.badBudgetPerMinute);
  return Math.max(shares[0]!, ...quiet);
}

/**
 * The share that evidence allows next; the one of now when it allows no larger one. Ramp `auto`: the largest w where for
 * every metric `w · gap ≤ margin` (the overall rate is provably within the margin) or `w · gap · requests per minute ≤
 * badBudget`. Ramp `steps`: the next one, once `w_next · gap ≤ margin`. Ramp `clock` asks no evidence: the next one.
 */
export function nextShare(
  policy: RolloutPolicy,
  share: number,
  readings: readonly GapReading[],
  requestsPerMinute: number,
): number {
  const larger = above(sharesOf(policy), share);
  if (policy.ramp === 'clock') return larger[0] ?? share;
  if (readings.length === 0) return share;
  const proved = (w: number) => readings.every(({ gap, margin }) => w * gap <= margin);
  if (policy.ramp === 'steps') return larger[0] !== undefined && proved(larger[0]) ? larger[0] : share;
  const affordable = (w: number) =>
    readings.every(({ gap, margin }) => w * gap <= margin || w * gap * requestsPerMinute <= policy.badBudgetPerMinute);
  return larger.findLast(affordable) ?? share;
}

/** A reading with the gap by which the weight was chosen. */
export type StepReading = GapReading & { stepGap?: number | undefined };

/**
 * One step back in a ramp `auto`, or null: when traffic has grown so much that what the weight risks exceeds four budgets
 * of bad requests while the gap is above the margin. Risked is what is known at best: by the gap that chose the weight, or by
 * the one of now, which is wide while an epoch is young. Without a known gap the weight counts as just within its budget
 * at `requestsPerMinute`.
 */
export function droppedShare(
  policy: RolloutPolicy,
  share: number,
  readings: readonly StepReading[],
  rates: { requestsPerMinute: number; requestsPerMinuteNow: number },
): number | null {
  const smaller = sharesOf(policy).findLast((w) => w < share);
  if (policy.ramp !== 'auto' || smaller === undefined) return null;
  const budget = policy.badBudgetPerMinute;
  const risky = readings.some(({ gap, margin, stepGap = budget / (share * rates.requestsPerMinute) }) => {
    const known = Math.min(gap, stepGap);
    return (
      gap > margin && share * known > margin && share * known * rates.requestsPerMinuteNow > budgetsBeforeDrop * budget
    );
  });
  return risky ? smaller : null;
}

/** How long the share lasts in a ramp `clock`; null for another ramp. A share in between lasts as long as the one below it. */
export function clockStepMs(policy: RolloutPolicy, share: number): number | null {
  if (policy.ramp !== 'clock' || !policy.clock) return null;
  const step = policy.clock.findLast(({ weightPercent }) => weightPercent / 100 <= share) ?? policy.clock[0];
  return step?.forMs ?? null;
}
