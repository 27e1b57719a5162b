import { AppError, type Garbage, type GarbageReport } from '@perch/contracts';
import { formatBytes, parseDuration } from '../duration.ts';
import { type Shown, tableText } from '../output.ts';
import type { Run } from '../verb.ts';

const leastMs = 3_600_000;
/** A store with millions of objects takes its time to be listed. */
const limitMs = 30 * 60_000;

export const run: Run = async (invocation, _args, options) => {
  const olderThanMs = parseDuration(String(options['olderThan'] ?? '24h'), '--older-than');
  if (olderThanMs < leastMs) throw new AppError('invalid', '--older-than: wants 1h or more: uploads may be under way');
  const client = await invocation.admin();
  const body = { dryRun: options['dryRun'] === true, olderThanMs };
  return shownGarbage(await client.call<GarbageReport>('/gc', { method: 'POST', body, timeoutMs: limitMs }));
};

const mostShown = 3;

/** Exit code 1 when a kind could not be removed. */
export function shownGarbage(report: GarbageReport): Shown {
  const found = report.found.filter(({ count, failed }) => count > 0 || failed !== null);
  const verb = report.dryRun ? 'would be removed' : 'removed';
  const failed = found.filter((one) => one.failed !== null);
  const examples = ({ examples, count }: Garbage) => [
    ...examples.slice(0, mostShown),
    ...(count > mostShown && examples.length > mostShown ? [`and ${count - mostShown} more`] : []),
  ];
  const text = () =>
    [
      found.length === 0
        ? 'Nothing to remove.'
        : tableText(found, [
            ['kind', ({ kind }) => kind],
            ['count', ({ count }) => count],
            ['size', ({ sizeBytes }) => formatBytes(sizeBytes)],
            ['what', ({ what }) => what],
            ['for example', examples],
          ]),
      ...failed.map((one) => `FAILED ${one.kind}: ${one.failed}`),
      ...(found.length === 0 ? [] : ['', `${formatBytes(report.sizeBytes)} ${verb}.`]),
    ].join('\n');
  return { value: report, text, exitCode: failed.length > 0 ? 1 : 0 };
}
