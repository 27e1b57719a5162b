import type { DecisionInput, MetricInput, PairEvidence } from '@perch/contracts';
import { firstShare } from './ramp.decide.ts';
import { rollbackEvidence } from './rollback-evidence.decide.ts';
import { type Outcome, type Sight, stay } from './sight.ts';
import { percent } from './words.ts';

/**
 * ln E of each metric over the pairs of a shadow: both answered the same request, so with equal versions a pair in which
 * only one side had the event is a fair coin (w = ½). Pairs that agree say nothing.
 */
export const pairLogEvidence = (metrics: readonly MetricInput[], pairs: PairEvidence | null): number[] =>
  metrics.map(({ metric, r0 }) => {
    const { stable, candidate } = pairs?.discordant[metric] ?? { stable: 0, candidate: 0 };
    return rollbackEvidence([{ share: 0.5, stableEvents: stable, candidateEvents: candidate }], r0);
  });

/** At least so many distinct pairs speak against the candidate: one request may have had several events. */
export const pairEvents = (pairs: PairEvidence | null): number =>
  Math.max(0, ...Object.values(pairs?.discordant ?? {}).map(({ candidate }) => candidate));

/** The stage ends with enough compared pairs or after its time; outputs that agree too seldom hold the rollout there. */
export function decideShadow(sight: Sight): Outcome {
  const { policy, pairs, sinceStepMs } = sight.input;
  const compared = pairs?.compared ?? 0;
  const agreement = pairs && compared > 0 ? pairs.agree / compared : null;
  if (policy.shadow) {
    const { pairs: wanted, mostMs, leastAgreement } = policy.shadow;
    if (compared < wanted && sinceStepMs < mostMs) {
      const sentence = `${compared} of ${wanted} pairs are compared${agreement === null ? '' : `; ${percent(agreement)} agree`}.`;
      return stay(sight, 'insufficient', [sentence], timeToPairs(sight.input, compared, wanted, mostMs));
    }
    if (leastAgreement !== undefined && (agreement ?? 0) < leastAgreement)
      return {
        ...stay(sight, 'hold', [disagreement(agreement, leastAgreement)], null),
        next: 'hold',
      };
  }
  const share = firstShare(policy, sight.input.requestsPerMinute);
  const reasons = [`${compared} pairs were compared${agreement === null ? '' : `; ${percent(agreement)} agree`}.`];
  return { verdict: 'advance', next: 'shift', share, reasons, nextStepInMs: null };
}

const disagreement = (agreement: number | null, least: number) =>
  agreement === null
    ? `No pair could be compared, and the policy wants ${percent(least)} to agree.`
    : `Outputs agree in ${percent(agreement)} of the pairs; the policy wants ${percent(least)}.`;

function timeToPairs({ sinceStepMs }: DecisionInput, compared: number, wanted: number, mostMs: number): number {
  const left = Math.max(0, mostMs - sinceStepMs);
  return compared > 0 ? Math.min(left, (sinceStepMs / compared) * (wanted - compared)) : left;
}
