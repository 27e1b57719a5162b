import { setTimeout as pause } from 'node:timers/promises';
import { AppError, type EndpointStats } from '@perch/contracts';
import { parseDuration } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import { renderShown, type Shown, shownList } from '../output.ts';
import { ratesBetween, type VersionRates } from '../stats.decide.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

const leastMs = 2_000; // routers tell their counts every two seconds

export const run: Run = async (invocation, [name], options) => {
  const overMs = parseDuration(String(options['over'] ?? '10s'), '--over');
  if (overMs < leastMs)
    throw new AppError('invalid', `--over: wants 2s or more, since routers tell their counts every 2 s`);
  const client = await invocation.admin();
  const read = () => client.call<EndpointStats>(`${endpointPath(name as string)}/stats`);
  const byRouter = options['byRouter'] === true;
  const first = await read();
  if (options['totals']) return shown(name as string, ratesBetween(undefined, first, byRouter), byRouter, false);
  if (options['watch']) return watch(invocation, read, first, { name: name as string, overMs, byRouter });
  invocation.hint(`Counting for ${overMs / 1_000} s ...`);
  await pause(overMs);
  return shown(name as string, ratesBetween(first, await read(), byRouter), byRouter, true);
};

/** Until Ctrl-C ends the program; each round is counted from the end of the one before. */
async function watch(
  invocation: Invocation,
  read: () => Promise<EndpointStats>,
  first: EndpointStats,
  { name, overMs, byRouter }: { name: string; overMs: number; byRouter: boolean },
): Promise<Shown | undefined> {
  for (let before = first; ; ) {
    await pause(overMs);
    const after = await read();
    const text = await renderShown(
      shown(name, ratesBetween(before, after, byRouter), byRouter, true),
      invocation.output,
    );
    process.stdout.write(`${text}\n\n`);
    before = after;
  }
}

const ms = (value: number | null) => (value === null ? undefined : `${value} ms`);

function shown(name: string, rates: VersionRates[], byRouter: boolean, timed: boolean): Shown {
  return shownList(
    rates,
    [
      ['version', ({ version }) => version],
      ...(byRouter ? [['router', ({ router }: VersionRates) => router] as const] : []),
      ['requests', ({ requests }) => requests],
      ...(timed ? [['per second', ({ requestsPerSecond }: VersionRates) => requestsPerSecond] as const] : []),
      ['p50', ({ p50Ms }) => ms(p50Ms)],
      ['p99', ({ p99Ms }) => ms(p99Ms)],
      ['errors', ({ errors }) => errors],
      ['error rate', ({ errorPercent }) => (errorPercent === null ? undefined : `${errorPercent} %`)],
      ['retries', ({ retries }) => retries],
    ],
    `No router has counted a request of ${name} yet.`,
  );
}
