import { AppError } from '@perch/contracts';
import { differenceText, shown } from './difference.plan.ts';
import type { FixtureVerdict } from './fixture-run.ts';

/** One fixture on a few lines: its mark, what the module told, and where the reply differs. */
export function verdictText({ name, ok, reply, differences, durationMs, events, told }: FixtureVerdict): string {
  const mark = ok === null ? '·' : ok ? '✓' : '✗';
  const lines = [`${mark} ${name}  ${durationMs} ms`, ...told.map((line) => `    ${line}`)];
  for (const event of events) lines.push(`    event ${JSON.stringify(event)}`);
  for (const difference of differences) lines.push(`    ${differenceText(difference)}`);
  if (reply !== undefined) lines.push(`    reply ${ok === null ? JSON.stringify(reply) : shown(reply)}`);
  return lines.join('\n');
}

export const verdictsText = (verdicts: readonly FixtureVerdict[]): string => verdicts.map(verdictText).join('\n');

/** The error of fixtures that differ; undefined: none does. */
export function verdictsFault(verdicts: readonly FixtureVerdict[]): AppError | undefined {
  const bad = verdicts.filter(({ ok }) => ok === false);
  if (bad.length === 0) return undefined;
  return new AppError(
    'invalid',
    `${bad.length} of ${verdicts.length} fixtures are not answered as wanted (--no-test registers it anyway):\n${verdictsText(bad)}`,
    { details: { fixtures: bad.map(({ name, differences }) => ({ name, differences })) } },
  );
}
