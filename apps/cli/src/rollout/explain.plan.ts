import type { DecisionInput, EpochCounts, Explanation, MetricReading } from '@perch/contracts';
import { type Column, tableText } from '../output.ts';
import { countText, figureText, percentText, pointsText } from './number.plan.ts';
import type { RolloutView } from './view.plan.ts';
import { oneLine, wrap } from './words.plan.ts';

/** Sentences, then the numbers that they are made of, then whether the same comes out again. */
export function explainText(explained: Explanation, { width, paint }: Pick<RolloutView, 'width' | 'paint'>): string {
  const { rollout, event, input, recomputed, sentences } = explained;
  const { endpoint, stable, candidate } = rollout;
  const head = paint.bold(`${oneLine(endpoint)}: version ${stable.version} to ${candidate.version}`);
  const when = event
    ? `${event.type.replace('_', ' ')} at ${event.at}, event ${event.id} by ${oneLine(event.actor)}`
    : '';
  const said = sentences.flatMap((sentence) => wrap(sentence, Math.min(width, 100)));
  const readings = (recomputed ?? event?.decision)?.readings ?? [];
  return [
    head,
    ...(when ? [when] : []),
    '',
    ...(said.length > 0 ? said : ['Nothing was decided by evidence yet.']),
    ...(readings.length > 0 ? ['', readingTable(readings, input?.unit ?? 'request')] : []),
    ...(input && input.metrics.length > 0 ? ['', epochTable(input)] : []),
    ...(recomputed ? ['', agreement(explained, paint)] : []),
  ].join('\n');
}

const plural = { request: 'requests', bucket: 'users' } as const;

function readingTable(readings: readonly MetricReading[], unit: DecisionInput['unit']): string {
  const rows = readings.flatMap((reading) => [
    { reading, arm: 'stable', ...reading.stable },
    { reading, arm: 'candidate', ...reading.candidate },
  ]);
  return tableText(rows, [
    ['metric', ({ reading, arm }) => (arm === 'stable' ? reading.metric : ' ')],
    ['arm', ({ arm }) => arm],
    [`of ${plural[unit]}`, ({ n, x }) => `${countText(x)} of ${countText(n)}`],
    ['rate', ({ n, x }) => (n > 0 ? percentText(x / n) : undefined)],
    ['bounds', ({ lower, upper }) => `${pointsText(lower)} - ${percentText(upper)}`],
    [
      'gap, margin',
      ({ reading, arm }) => (arm === 'candidate' ? `${pointsText(reading.gap)} of ${pointsText(reading.margin)}` : ' '),
    ],
    ['E', ({ reading, arm }) => (arm === 'candidate' ? figureText(reading.e) : ' ')],
  ]);
}

type OpenCount = Pick<EpochCounts, 'stableOpen'>;
const hasOpen = ({ stableOpen = 0 }: OpenCount) => stableOpen > 0;
const openColumn: Column<OpenCount> = ['of them on their way', ({ stableOpen = 0 }) => countText(stableOpen)];

/** What the rollback rule took: how the events of each epoch fell on the arms. */
function epochTable({ metrics }: DecisionInput): string {
  const rows = metrics.flatMap(({ metric, r0, epochs }) => epochs.map((epoch) => ({ metric, r0, ...epoch })));
  if (rows.length === 0) return 'No epoch with events: nothing speaks for a rollback.';
  return tableText(rows, [
    ['metric', ({ metric }) => metric],
    ['r0', ({ r0 }) => figureText(r0)],
    ['epoch', ({ epoch }) => epoch],
    ['share of candidate', ({ share }) => percentText(share)],
    ['its events', ({ candidateEvents }) => countText(candidateEvents)],
    ["stable's events", ({ stableEvents }) => countText(stableEvents)],
    ...(rows.some(hasOpen) ? [openColumn] : []),
  ]);
}

function agreement({ agrees, recomputed, event }: Explanation, paint: RolloutView['paint']): string {
  const { verdict, e, threshold } = recomputed as NonNullable<Explanation['recomputed']>;
  const now = `${verdict.replace('_', ' ')}, E ${figureText(e)} of ${figureText(threshold)}`;
  if (agrees) return paint.green(`Computed again from what was stored: the same (${now}).`);
  const then = event?.decision
    ? `${event.decision.verdict.replace('_', ' ')}, E ${figureText(event.decision.e)}`
    : 'nothing';
  return paint.red(`Computed again from what was stored: NOT the same. Stored: ${then}; computed: ${now}.`);
}
