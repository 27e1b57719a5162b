import type { Rollout, RolloutEvent } from '@perch/contracts';
import { figureText, pointsText, spanText } from './number.plan.ts';
import { eventText } from './view.plan.ts';
import { oneLine, standing } from './words.plan.ts';

export interface Seen {
  rollout: Rollout;
  events: readonly RolloutEvent[];
  note?: string | undefined;
}

/** What is told again when it changed: where it stands. Reasons hold counts, which change with every request. */
const standKey = ({ state, run, heldBy, weightPercent, decision, queuedVersion }: Rollout): string =>
  JSON.stringify([state, run, heldBy, weightPercent, decision?.verdict, queuedVersion]);

/** Lines for a log or a program: new events, then the standing if it changed. `words`: for people, else JSON. */
export function lineOfChange(before: Seen | undefined, after: Seen, words: boolean): string[] {
  const known = before?.events.at(-1)?.id ?? 0;
  const events = after.events.filter(({ id }) => id > known);
  const changed = !before || standKey(before.rollout) !== standKey(after.rollout);
  const note = after.note !== undefined && after.note !== before?.note ? [after.note] : [];
  if (!words)
    return [
      ...events.map((event) => JSON.stringify({ event })),
      ...(changed ? [JSON.stringify({ rollout: after.rollout })] : []),
      ...note.map((text) => JSON.stringify({ note: text })),
    ];
  return [
    ...events.map((event) => `${event.at}  ${eventText(event)}`),
    ...(changed ? [standLine(after.rollout)] : []),
    ...note.map(oneLine),
  ];
}

/** One line: where it stands and what the numbers are. */
export function standLine(rollout: Rollout): string {
  const { endpoint, stable, candidate, weightPercent, decision, reason } = rollout;
  const versions = `version ${stable.version} to ${candidate.version}`;
  const gaps = (decision?.readings ?? []).map(
    ({ metric, gap, margin }) => `${metric} gap ${pointsText(gap)} of ${pointsText(margin)}`,
  );
  const next = decision?.nextStepInMs == null ? [] : [`next step in about ${spanText(decision.nextStepInMs)}`];
  const evidence = decision
    ? [`E ${figureText(decision.e)} of ${figureText(decision.threshold)}`, ...gaps, ...next]
    : [];
  const numbers = evidence.length > 0 ? ` (${evidence.join(', ')})` : '';
  return oneLine(
    `${endpoint}: ${versions}, ${standing(rollout)}, ${figureText(weightPercent)} % of requests${numbers}: ${reason}`,
  );
}
