import { type RolloutPolicy, rolloutPolicy } from '@perch/contracts';
import { nullRatio } from './rollback-evidence.decide.ts';
import { seededRandom } from './simulate-chance.ts';
import { type FailureDelays, reportedByWorkers } from './simulate-delay.ts';
import { PerchRule, type SimulatedMetric } from './simulate-rule.ts';
import { drawUsers, type RatesAt, requestTraffic, stickyTraffic, type Unevenness } from './simulate-traffic.ts';
import { runTrial } from './simulate-trial.ts';

/** Two equal versions, with all default metrics on: whoever rolls back is wrong. */
export interface NullCase {
  name: string;
  /** Error rate of both. */
  p: number;
  /** Fixed; left out: by the ramp of the policy. */
  share?: number;
  policy?: RolloutPolicy;
  requestsPerSecond?: number;
  /** Both arms' rates are three times as high during the first quarter of the run. */
  drift?: boolean;
  delays?: FailureDelays;
  sticky?: { users: number; unevenness: Unevenness };
}

/** Requests of a run; looked at once a second. */
export const requestsOfRun = 20_000;
const rates = [0.001, 0.01, 0.05];
const slowRate = 0.005;
const contractRate = 0.0005;

/** A version that waits for evidence is watched until its requests are over. */
const patient = rolloutPolicy.parse({ maxWaitMs: 4 * 7 * 24 * 3_600_000 });
/** The weights of the default ramp, by time alone: every share is reached in every run. */
const byClock = rolloutPolicy.parse({
  ramp: 'clock',
  clock: [1, 5, 25, 50].map((weightPercent) => ({ weightPercent, forMs: 100_000 })),
  bakeMs: 1_000_000,
});
const ramp = { policy: patient, requestsPerSecond: 20 };
const percent = (share: number) => `${share * 100} %`;

export const fixedCases: NullCase[] = rates.flatMap((p) =>
  [0.01, 0.05, 0.25, 0.5].map((share) => ({ name: `errors ${percent(p)}, weight ${percent(share)}`, p, share })),
);
export const rampCases: NullCase[] = rates.map((p) => ({ name: `errors ${percent(p)}, ramp auto`, p, ...ramp }));
export const driftCases: NullCase[] = rates.flatMap((p) => [
  { name: `errors ${percent(p)}, × 3 in the first quarter, weight 25 %`, p, share: 0.25, drift: true },
  { name: `errors ${percent(p)}, × 3 in the first quarter, ramp auto`, p, drift: true, ...ramp },
]);
export const delayCases: NullCase[] = rates.flatMap((p) =>
  [
    { stableMs: 10_000, candidateMs: 0 },
    { stableMs: 0, candidateMs: 10_000 },
  ].map((delays) => ({
    name: `errors ${percent(p)}, shown after ${delays.stableMs} ms by stable and ${delays.candidateMs} ms by the candidate`,
    p,
    share: 0.25,
    delays,
  })),
);
export const stickyCases: NullCase[] = [100, 1_000, 10_000].flatMap((users) =>
  (['equal', 'beta', 'always-failing'] as const).map((unevenness) => ({
    name: `${users} users, ${unevenness}, errors 1 %, weights 1, 5, 25, 50 %`,
    p: 0.01,
    policy: byClock,
    sticky: { users, unevenness },
  })),
);

const metricsAt = (p: number): SimulatedMetric[] => {
  const dayBefore = (rate: number) => ({ n: 1_000_000, x: 1_000_000 * rate });
  return [
    { metric: 'error', r0: nullRatio('error', dayBefore(p)) },
    { metric: 'slow', r0: nullRatio('slow', dayBefore(slowRate)) },
    { metric: 'contract', r0: nullRatio('contract', dayBefore(contractRate)) },
  ];
};

const oneWorker = reportedByWorkers(1);

/** One run: true when it is rolled back. The same seed and run give the same requests. */
export function rollsBackNull(nullCase: NullCase, seed: number, run: number, report = oneWorker): boolean {
  const { p, share, policy = patient, requestsPerSecond = 50, drift, delays, sticky } = nullCase;
  const random = seededRandom(seed, run);
  const chances = [p, slowRate, contractRate];
  const tripled = chances.map((chance) => 3 * chance);
  const quarterMs = (requestsOfRun / requestsPerSecond) * 250;
  const ratesAt: RatesAt = (_arm, atMs) => (drift && atMs <= quarterMs ? tripled : chances);
  const requests = sticky
    ? stickyTraffic(ratesAt, drawUsers(random, sticky.users, sticky.unevenness, p), random)
    : requestTraffic(ratesAt, random);
  const rule = new PerchRule({
    policy,
    unit: sticky ? 'bucket' : 'request',
    metrics: metricsAt(p),
    requestsPerMinute: requestsPerSecond * 60,
    ...(share === undefined ? {} : { fixedShare: share }),
  });
  const { end } = runTrial(rule, delays ? report(requests, delays) : requests, {
    requestsPerMinute: requestsPerSecond * 60,
    mostRequests: requestsOfRun,
    mostMs: Number.POSITIVE_INFINITY,
    intervalMs: 1_000,
  });
  return end === 'rolled_back';
}

/** The share of `runs` that were rolled back. `report`: how delayed failures are counted. */
export function falseRollbackRate(nullCase: NullCase, seed: number, runs: number, report = oneWorker): number {
  let back = 0;
  for (let run = 0; run < runs; run += 1) if (rollsBackNull(nullCase, seed, run, report)) back += 1;
  return back / runs;
}
