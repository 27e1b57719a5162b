import { type RolloutPolicy, rolloutPolicy } from '@perch/contracts';
import { nullRatio } from './rollback-evidence.decide.ts';
import { seededRandom } from './simulate-chance.ts';
import { PerchRule } from './simulate-rule.ts';
import { drawUsers, type RatesAt, requestTraffic, stickyTraffic } from './simulate-traffic.ts';
import { runTrial, type Trial } from './simulate-trial.ts';

const hourMs = 3_600_000;

/** Only errors are watched; nobody gives up waiting. */
export const errorAlone: RolloutPolicy = rolloutPolicy.parse({
  slow: false,
  contract: false,
  maxWaitMs: 4 * 7 * 24 * hourMs,
});
/** All that is watched by default. */
export const allMetrics: RolloutPolicy = rolloutPolicy.parse({ maxWaitMs: 4 * 7 * 24 * hourMs });

/** A candidate beside a stable version, each with its error rate; slow replies are as frequent on both. */
export interface Comparison {
  stable: number;
  candidate: number;
  requestsPerSecond: number;
  policy?: RolloutPolicy;
  fixedShare?: number;
  withoutRollback?: boolean;
  /** Both rates are three times as high so long. */
  tripledMs?: number;
  /** Users of a sticky key, all alike. */
  users?: number;
  mostRequests?: number;
  mostMs?: number;
  intervalMs?: number;
}

const slowRate = 0.005;

export interface ComparedTrial extends Trial {
  /** When the evidence was enough for the bake. */
  bakeAtMs: number | null;
}

/** One run of a comparison. */
export function compareOnce(comparison: Comparison, seed: number, run: number): ComparedTrial {
  const { stable, candidate, requestsPerSecond, policy = allMetrics, tripledMs = 0, users } = comparison;
  const random = seededRandom(seed, run);
  const watched = (['error', 'slow', 'contract'] as const).filter((metric) => policy[metric] !== false);
  const chance = { error: { stable, candidate }, slow: { stable: slowRate, candidate: slowRate } };
  const rates: RatesAt = (arm, atMs) =>
    watched.map((metric) => {
      const usual = metric === 'contract' ? 0 : chance[metric][arm];
      const rest = metric === 'slow' ? 1 - chance.error[arm] : 1;
      return Math.min(1, usual * rest * (atMs <= tripledMs ? 3 : 1));
    });
  const traffic = users
    ? stickyTraffic(rates, drawUsers(random, users, 'equal', stable), random)
    : requestTraffic(rates, random);
  const rule = new PerchRule({
    ...comparison,
    policy,
    unit: users ? 'bucket' : 'request',
    metrics: watched.map((metric) => ({ metric, r0: nullRatio(metric, { n: 1, x: metric === 'error' ? stable : 0 }) })),
    requestsPerMinute: requestsPerSecond * 60,
  });
  const { mostMs = 48 * hourMs, mostRequests, intervalMs } = comparison;
  const length = { requestsPerMinute: requestsPerSecond * 60, mostMs, mostRequests, intervalMs };
  return { ...runTrial(rule, traffic, length), bakeAtMs: rule.bakeAtMs };
}

export const compare = (comparison: Comparison, seed: number, runs: number): ComparedTrial[] =>
  Array.from({ length: runs }, (_, run) => compareOnce(comparison, seed, run));
