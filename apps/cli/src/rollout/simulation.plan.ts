import type { RolloutSimulation } from '@perch/contracts';
import { factsText, tableText } from '../output.ts';
import { figureText, percentText, pointsText, spanText } from './number.plan.ts';
import type { RolloutView } from './view.plan.ts';
import { oneLine, wrap } from './words.plan.ts';

const span = (ms: number | null) => (ms === null ? 'over half of the runs did not end in time' : spanText(ms));

export function simulationText(
  endpoint: string,
  simulation: RolloutSimulation,
  { width }: Pick<RolloutView, 'width'>,
): string {
  const { policy, requestsPerMinute, errorRate, source, runs, smallestDetectable, stops, margin } = simulation;
  const weights =
    policy.ramp === 'clock' ? (policy.clock ?? []).map(({ weightPercent }) => weightPercent) : policy.weightsPercent;
  const facts = factsText([
    ['endpoint', endpoint],
    ['ramp', `${policy.ramp}: ${weights.map(figureText).join(', ')} %`],
    ['requests', `${figureText(requestsPerMinute)} a minute`],
    ['errors of stable', percentText(errorRate)],
    ['margin', `${pointsText(margin)} points`],
    ['runs', runs],
  ]);
  const promote =
    simulation.medianPromoteMs === null
      ? span(null)
      : `${span(simulation.medianPromoteMs)} (95 % of runs: ${simulation.p95PromoteMs === null ? 'not in time' : span(simulation.p95PromoteMs)})`;
  const found = factsText([
    ['an equal version comes to its bake after', promote],
    ['and is promoted so much later', spanText(policy.bakeMs)],
    ['an equal version is rolled back in', `${percentText(simulation.falseRollbackRate)} of runs`],
    [
      'rolled back in 95 % of runs',
      smallestDetectable === null ? 'no error rate below 100 %' : `from ${percentText(smallestDetectable)} errors on`,
    ],
  ]);
  const table = tableText(stops, [
    ['errors of the candidate', (stop) => percentText(stop.errorRate)],
    ['rolled back', ({ rolledBack }) => percentText(rolledBack)],
    [
      'bad requests until then (median)',
      ({ medianBadRequests }) => (medianBadRequests === null ? undefined : figureText(medianBadRequests)),
    ],
  ]);
  return [facts, '', ...wrap(oneLine(source), width), '', found, ...(stops.length > 0 ? ['', table] : [])].join('\n');
}
