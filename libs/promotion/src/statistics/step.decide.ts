import type { Decision, DecisionInput } from '@perch/contracts';
import { decideBake } from './bake.decide.ts';
import { weightedEvidence } from './metric-weights.decide.ts';
import { readMetrics } from './reading.decide.ts';
import { decideRollback } from './rollback.decide.ts';
import { decideShadow, pairLogEvidence } from './shadow.decide.ts';
import { decideShift } from './shift.decide.ts';
import type { Outcome, Sight } from './sight.ts';

const stages: Record<DecisionInput['stage'], (sight: Sight) => Outcome> = {
  shadowing: decideShadow,
  shifting: decideShift,
  baking: decideBake,
};

/**
 * The verdict on a rollout from all that was counted, and what is to be done. Pure: the same input gives the same decision,
 * so a stored one can be computed again. Rolling back goes before everything; else the stage decides. It may be asked at
 * any time and as often as one likes without making either error more likely.
 */
export function decideStep(input: DecisionInput): Decision {
  const sight = look(input);
  const { e, threshold, readings } = sight;
  const outcome = decideRollback(sight) ?? stages[input.stage](sight);
  return { ...outcome, e, threshold, readings };
}

/** What the numbers say. With a shadow stage its pairs hold half of the evidence: an E of their own, and one threshold. */
export function look(input: DecisionInput): Sight {
  const { policy, metrics, pairs } = input;
  const { readings, logE } = readMetrics(metrics, policy.promotionAlpha);
  const weights = readings.map(({ weight }) => weight);
  const live = weightedEvidence(logE, weights);
  const e = policy.shadow ? (live + weightedEvidence(pairLogEvidence(metrics, pairs), weights)) / 2 : live;
  return { input, readings, e, threshold: 1 / policy.alpha };
}
