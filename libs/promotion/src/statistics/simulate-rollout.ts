import type { RolloutPolicy, RolloutSimulation } from '@perch/contracts';
import { allowedGap, marginFor } from './margin.decide.ts';
import { smallestMargin } from './margin-auto.decide.ts';
import { nullRatio } from './rollback-evidence.decide.ts';
import { seededRandom } from './simulate-chance.ts';
import { PerchRule, type SimulatedMetric } from './simulate-rule.ts';
import { type RatesAt, requestTraffic } from './simulate-traffic.ts';
import { median, quantile, runTrial, type Trial } from './simulate-trial.ts';

export interface RolloutForecast {
  policy: RolloutPolicy;
  /** All arms. */
  requestsPerMinute: number;
  /** Of stable. */
  errorRate: number;
  /** Where both figures come from, in words. */
  source: string;
  runs: number;
  seed: number;
}

/** What candidates are tried that fail this much more often than stable. */
const worsenings = [0.02, 0.05, 0.1, 0.3, 1];
/** A regression counts as detectable when it is rolled back in so many runs. */
const detected = 0.95;
const mostRunsEach = 200;
const horizonMs = 14 * 24 * 3_600_000;
/** A latency above 1.5 × the p99 is rare on the day it was measured. */
const slowRate = 0.003;

interface TimedTrial extends Trial {
  bakeAtMs: number | null;
}

/**
 * What a policy would do at these rates, by trials of the very rule, drawn from `seed`: errors at the given rate, a few slow
 * replies, and requests as the units. `pause` is awaited between trials, so that others get their turn. Promotion is timed
 * up to the bake.
 */
export async function simulateRollout(
  forecast: RolloutForecast,
  pause: () => Promise<void> = async () => {},
): Promise<RolloutSimulation> {
  const { policy, requestsPerMinute, errorRate, source, runs } = forecast;
  const few = Math.min(runs, mostRunsEach);
  const trials = async (candidateRate: number, count: number): Promise<TimedTrial[]> => {
    const done: TimedTrial[] = [];
    for (let run = 0; run < count; run += 1) {
      done.push(oneTrial(forecast, candidateRate, run));
      await pause();
    }
    return done;
  };
  const equal = await trials(errorRate, runs);
  const stops: RolloutSimulation['stops'] = [];
  for (const worse of worsenings.map((more) => Math.min(1, errorRate + more))) {
    const tried = await trials(worse, few);
    const bad = tried.filter(({ end }) => end === 'rolled_back').map(({ badRequests }) => badRequests);
    stops.push({ errorRate: worse, rolledBack: bad.length / few, medianBadRequests: median(bad) });
  }
  const bakeTimes = equal.map(({ bakeAtMs }) => bakeAtMs ?? Number.POSITIVE_INFINITY);
  return {
    policy,
    requestsPerMinute,
    errorRate,
    source,
    runs,
    falseRollbackRate: shareRolledBack(equal),
    smallestDetectable: await smallestDetectable(errorRate, async (rate) => shareRolledBack(await trials(rate, few))),
    medianPromoteMs: finiteOrNull(median(bakeTimes)),
    p95PromoteMs: finiteOrNull(quantile(bakeTimes, 0.95)),
    stops,
    margin: allowedGap(marginFor(policy, 'error', autoMargin(forecast)), errorRate),
  };
}

const shareRolledBack = (trials: readonly Trial[]) =>
  trials.filter(({ end }) => end === 'rolled_back').length / Math.max(1, trials.length);
const finiteOrNull = (value: number | null) => (value !== null && Number.isFinite(value) ? value : null);

const autoMargin = ({ policy, requestsPerMinute, errorRate: rate }: RolloutForecast) =>
  policy.margin === 'auto' ? smallestMargin(policy, { requestsPerMinute, rate }, policy.withinMs ?? horizonMs) : null;

function oneTrial(forecast: RolloutForecast, candidateRate: number, run: number): TimedTrial {
  const { policy, requestsPerMinute, errorRate, seed } = forecast;
  const metrics = metricsOf(policy, errorRate);
  const rule = new PerchRule({ policy, unit: 'request', metrics, requestsPerMinute, autoMargin: autoMargin(forecast) });
  const rates: RatesAt = (arm) => {
    const error = arm === 'stable' ? errorRate : candidateRate;
    return metrics.map(({ metric }) => (metric === 'error' ? error : metric === 'slow' ? slowRate * (1 - error) : 0));
  };
  const traffic = requestTraffic(rates, seededRandom(seed, run));
  const trial = runTrial(rule, traffic, { requestsPerMinute, mostMs: horizonMs });
  return { ...trial, bakeAtMs: rule.bakeAtMs };
}

/** What the policy watches. */
const metricsOf = (policy: RolloutPolicy, errorRate: number): SimulatedMetric[] => {
  const guards = (['error', 'slow', 'contract'] as const).filter((metric) => policy[metric] !== false);
  const named = [...policy.flags, ...policy.provided].map(({ name }) => name);
  const history = { n: 1e6, x: 1e6 * errorRate };
  return [...guards, ...named].map((metric) => ({
    metric,
    r0: nullRatio(metric, metric === 'error' ? history : { n: 1e6, x: 0 }),
  }));
};

const detectionSteps = 8;

/** By halving the distance on a log scale; null: not even a version that always fails is rolled back often enough. */
async function smallestDetectable(base: number, caught: (rate: number) => Promise<number>): Promise<number | null> {
  if ((await caught(1)) < detected) return null;
  let low = Math.log(Math.max(base, 1e-5));
  let high = 0;
  for (let turn = 0; turn < detectionSteps; turn += 1) {
    const middle = (low + high) / 2;
    if ((await caught(Math.exp(middle))) >= detected) high = middle;
    else low = middle;
  }
  return Math.exp(high);
}
