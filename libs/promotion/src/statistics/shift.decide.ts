import type { Decision, DecisionInput, RolloutPolicy } from '@perch/contracts';
import { predictNextStepMs } from './prediction.decide.ts';
import { bakeShare, clockStepMs, droppedShare, nextShare, sharesOf } from './ramp.decide.ts';
import { type GapReading, provedWithin } from './reading.decide.ts';
import { type Outcome, type Sight, stay } from './sight.ts';
import { duration, gapSentence, percent, widestGap } from './words.ts';

/** Where a rollout stands, as far as its next step is concerned. `requestsPerMinute`: of the busiest minute known, all arms. */
export type Standing = Pick<DecisionInput, 'policy' | 'share' | 'unit' | 'requestsPerMinute'>;
export type StandingReading = GapReading & { stable: { n: number }; candidate: { n: number } };

export interface Step {
  next: 'bake' | 'shift';
  share: number;
}

/** What the evidence allows, whatever the time: the bake, a larger share, or nothing. */
export function allowedStep(
  { policy, share, unit, requestsPerMinute }: Standing,
  readings: readonly StandingReading[],
): Step | null {
  const last = sharesOf(policy).at(-1)!;
  if (policy.ramp === 'clock' && share >= last) return { next: 'bake', share: bakeShare };
  if (policy.ramp !== 'clock' && readings.every(sawNothing)) return null;
  const mayBake = policy.ramp === 'auto' || (policy.ramp === 'steps' && share >= last);
  if (mayBake && provedWithin(readings) && (unit === 'request' || enoughUsers(policy, readings)))
    return { next: 'bake', share: bakeShare };
  const larger = nextShare(policy, share, readings, requestsPerMinute);
  return larger > share ? { next: 'shift', share: larger } : null;
}

/** Without any traffic there is nothing to learn, however little a larger share would risk. */
const sawNothing = ({ stable, candidate }: StandingReading): boolean => stable.n + candidate.n === 0;

/** Under a sticky key nothing is promoted on the word of a few users. */
const enoughUsers = (policy: RolloutPolicy, readings: readonly StandingReading[]): boolean =>
  readings.every(({ candidate }) => candidate.n >= policy.leastBuckets);

/** Weights rise as the evidence allows; steps are at least the dwell apart, those of a clock as long as it says. */
export function decideShift(sight: Sight): Outcome {
  const { policy, share, sinceStepMs, holds = [] } = sight.input;
  const dropped = dropBack(sight);
  if (dropped) return dropped;
  if (holds.length > 0) return stay(sight, 'hold', [...holds], null);
  const requestsPerMinute = Math.max(sight.input.requestsPerMinute, sight.input.requestsPerMinuteNow);
  const step = allowedStep({ ...sight.input, requestsPerMinute }, sight.readings);
  if (!step) return withoutStep(sight);
  const waitMs = Math.max(0, (clockStepMs(policy, share) ?? policy.dwellMs) - sinceStepMs);
  if (waitMs > 0)
    return stay(
      sight,
      'hold',
      [`Evidence allows ${percent(step.share)}; the step comes in ${duration(waitMs)}.`],
      waitMs,
    );
  return { verdict: 'advance', ...step, reasons: stepReasons(sight, step), nextStepInMs: null };
}

function dropBack(sight: Sight): Outcome | null {
  const { policy, share, metrics, requestsPerMinuteNow } = sight.input;
  const readings = sight.readings.map((reading, at) => ({ ...reading, stepGap: metrics[at]!.stepGap }));
  const smaller = droppedShare(policy, share, readings, sight.input);
  if (smaller === null) return null;
  const sentence = `Traffic grew to ${Math.round(requestsPerMinuteNow)} requests a minute: ${percent(share)} of it would risk more than four budgets of bad requests before the candidate is proved.`;
  return { verdict: 'hold', next: 'shift', share: smaller, reasons: [sentence], nextStepInMs: null };
}

const stepReasons = (sight: Sight, step: Step): string[] => {
  if (sight.input.policy.ramp === 'clock') return [`The clock of the policy goes on to ${percent(step.share)}.`];
  const widest = widestGap(sight.readings);
  const why =
    step.next === 'bake'
      ? 'every metric is provably within its margin'
      : `${percent(step.share)} is within what the evidence allows`;
  return [`Step to ${percent(step.share)}: ${why}.`, ...(widest ? [gapSentence(widest)] : [])];
};

/** No step is allowed: the evidence says no, or it does not say enough yet. */
function withoutStep(sight: Sight): Outcome {
  const { policy, sinceEvidenceMs, share } = sight.input;
  const worse = sight.readings.find(({ candidate, stable, margin }) => candidate.lower - stable.upper > margin);
  if (worse) {
    const outcome = stay(sight, 'hold', [`${gapSentence(worse)} It is provably worse than the margin allows.`], null);
    const end = policy.onMaxWait === 'abort' ? 'abort' : 'hold';
    return sinceEvidenceMs < policy.maxWaitMs ? outcome : { ...outcome, next: end, share: end === 'abort' ? 0 : share };
  }
  const reasons = shortage(sight);
  if (sinceEvidenceMs < policy.maxWaitMs) return stay(sight, 'insufficient', reasons, predictNextStepMs(sight.input));
  const ends: Record<typeof policy.onMaxWait, Pick<Decision, 'next' | 'share'>> = {
    hold: { next: 'hold', share },
    promote: { next: 'promote', share: 1 },
    abort: { next: 'abort', share: 0 },
  };
  const waited = `There was not enough evidence for ${duration(policy.maxWaitMs)}.`;
  return { verdict: 'insufficient', ...ends[policy.onMaxWait], reasons: [waited, ...reasons], nextStepInMs: null };
}

function shortage(sight: Sight): string[] {
  const { input, readings } = sight;
  const widest = widestGap(readings);
  if (!widest) return ['No metric is counted.'];
  if (readings.every(sawNothing)) return ['There has been no traffic since the last step.'];
  if (widest.candidate.n === 0) return [`The candidate has had no request that ${widest.metric} could be judged by.`];
  if (input.unit === 'bucket' && !enoughUsers(input.policy, readings) && provedWithin(readings))
    return [`${widest.candidate.n} users are too few; the policy wants ${input.policy.leastBuckets}.`];
  return [gapSentence(widest)];
}
