import {
  closedByWorkers,
  endedRequests,
  reportedByWorkers,
} from '../../libs/promotion/src/statistics/simulate-delay.ts';
import {
  delayCases, driftCases, falseRollbackRate, fixedCases, rampCases, requestsOfRun, stickyCases,
} from '../../libs/promotion/src/statistics/simulate-null.ts'; // biome-ignore format: one list
import { median, quantile } from '../../libs/promotion/src/statistics/simulate-trial.ts';
import { allMetrics, compare, errorAlone } from '../../libs/promotion/src/statistics/simulate-worse.ts';
import { count, percent, table, time } from './words.ts';

const seed = 20_255;
const hourMs = 3_600_000;

/** What the rule promises of equal versions, at the full number of runs. */
export function nullTable(runs: number, say: (line: string) => void): string {
  const rows = [...fixedCases, ...rampCases, ...driftCases, ...delayCases, ...stickyCases].map((nullCase) => {
    const rate = falseRollbackRate(nullCase, seed, runs);
    say(`${nullCase.name}: ${rate}`);
    return [nullCase.name, percent(rate)];
  });
  return table(['equal versions, all default metrics', 'rolled back'], rows);
}

/** What the rule takes of requests whose failures show late: the same delays counted in other ways, and how far those help. */
export function delayTable(runs: number, say: (line: string) => void): string {
  const reports = [endedRequests, closedByWorkers(1), closedByWorkers(16), reportedByWorkers(1), reportedByWorkers(16)];
  const rows = delayCases.map((nullCase) => {
    const rates = reports.map((report) => percent(falseRollbackRate(nullCase, seed, runs, report)));
    say(`${nullCase.name}: ${rates.join(', ')}`);
    return [nullCase.name, ...rates];
  });
  return table(
    [
      'equal versions',
      'each failure as it shows',
      'whole cohorts, 1 worker',
      'the same, 16 workers',
      'stable under way counts, 1 worker',
      'the same, 16 workers',
    ],
    rows,
  );
}

/** How long an equal version takes to its bake. */
export function promotionTable(runs: number, say: (line: string) => void): string {
  const rows = [500, 50, 10, 1].map((requestsPerSecond) => {
    const cells = [errorAlone, allMetrics].map((policy) => {
      const equal = { stable: 0.001, candidate: 0.001, requestsPerSecond, policy, mostMs: 24 * hourMs };
      const times = compare(equal, seed, runs).flatMap(({ bakeAtMs }) => bakeAtMs ?? []);
      return `${time(quantile(times, 0.5))} (${time(quantile(times, 0.95))})`;
    });
    say(`${requestsPerSecond} a second: ${cells.join(', ')}`);
    return [`${requestsPerSecond} a second`, ...cells];
  });
  return table(['requests', '`error` alone', 'all default metrics'], rows);
}

/** What is caught at a fixed weight of 25 %, by requests and by users of a sticky key. */
export function powerTable(runs: number, say: (line: string) => void): string {
  const cases = [
    ['0.1 % → 1 %', { stable: 0.001, candidate: 0.01 }],
    ['1 % → 5 %', { stable: 0.01, candidate: 0.05 }],
    ['1 % → 5 %, 10,000 users', { stable: 0.01, candidate: 0.05, users: 10_000 }],
    ['1 % → 5 %, 1,000 users', { stable: 0.01, candidate: 0.05, users: 1_000 }],
    ['1 % → 5 %, 100 users', { stable: 0.01, candidate: 0.05, users: 100 }],
  ] as const;
  const rows = cases.map(([name, rates]) => {
    const wish = { ...rates, requestsPerSecond: 50, fixedShare: 0.25, mostRequests: requestsOfRun, intervalMs: 1_000 };
    const trials = compare({ ...wish, policy: allMetrics }, seed, runs);
    const back = trials.filter(({ end }) => end === 'rolled_back');
    say(`${name}: ${back.length / runs}`);
    return [name, percent(back.length / runs), count(median(back.map(({ badRequests }) => badRequests)))];
  });
  return table(['candidate, all default metrics', 'rolled back', 'bad requests until stopped'], rows);
}
