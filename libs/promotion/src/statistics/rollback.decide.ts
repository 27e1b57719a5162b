import type { MetricReading } from '@perch/contracts';
import { pairEvents } from './shadow.decide.ts';
import type { Outcome, Sight } from './sight.ts';
import { figure, splitSentence } from './words.ts';

/** One request, whatever it raised, never rolls back alone. */
export const leastCandidateEvents = 2;

/** Back to stable: the outcome for the reasons given. */
export const backToStable = (reasons: string[]): Outcome => ({
  verdict: 'roll_back',
  next: 'roll_back',
  share: 0,
  reasons,
  nextStepInMs: null,
});

/** The metric that speaks loudest against the candidate. */
const loudest = (readings: readonly MetricReading[]): MetricReading | undefined =>
  [...readings].sort((one, other) => other.e * other.weight - one.e * one.weight)[0];

/** Rolls back when E reaches 1/α with at least two distinct candidate requests among the events; else null. */
export function decideRollback(sight: Sight): Outcome | null {
  const { input, readings, e, threshold } = sight;
  const events = input.candidateEvents + (input.policy.shadow ? pairEvents(input.pairs) : 0);
  if (e < threshold || events < leastCandidateEvents) return null;
  const metric = loudest(readings);
  const counts = input.metrics.filter((one) => one.metric === metric?.metric);
  return backToStable([
    `The evidence that the candidate is worse${metric ? ` (${metric.metric} above all)` : ''}, E = ${figure(e)}, reached ${figure(threshold)}.`,
    ...counts.map((one) => `${splitSentence(one)} E of ${one.metric} alone is ${figure(metric!.e)}.`),
  ]);
}
