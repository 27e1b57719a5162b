import { type DecisionInput, type EpochCounts, rolloutPolicy } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { marginOf } from './margin.decide.ts';
import { expectedPromotionMs, smallestMargin } from './margin-auto.decide.ts';
import { drawBeta, drawBinomial, seededRandom } from './simulate-chance.ts';
import { reportedByWorkers } from './simulate-delay.ts';
import { simulateRollout } from './simulate-rollout.ts';
import { PerchRule } from './simulate-rule.ts';
import { requestTraffic } from './simulate-traffic.ts';
import { decideStep } from './step.decide.ts';

const policy = rolloutPolicy.parse({ maxWaitMs: 1e9 });
const metrics = [
  { metric: 'error', r0: 1 },
  { metric: 'slow', r0: 1.25 },
];

/** `decideStep` fed with the counts that the simulated rule took, epoch by epoch. */
function inputOf(
  rule: PerchRule,
  epochs: EpochCounts[][],
  sinceStepMs: number,
  requestsPerMinute: number,
): DecisionInput {
  return {
    policy,
    unit: 'request',
    share: rule.share,
    stage: rule.stage === 'baking' ? 'baking' : 'shifting',
    sinceStepMs,
    sinceEvidenceMs: 0,
    requestsPerMinute,
    requestsPerMinuteNow: requestsPerMinute,
    candidateEvents: rule.units.candidateEvents,
    pairs: null,
    metrics: metrics.map((metric, at) => ({
      ...metric,
      margin: marginOf(metric.metric),
      epochs: epochs[at]!,
      stable: { ...rule.units.stable[at]! },
      candidate: { ...rule.units.candidate[at]! },
      whole: { stable: { ...rule.units.wholeStable[at]! }, candidate: { n: 0, x: 0 } },
    })),
  };
}

describe('PerchRule', () => {
  it.each([
    ['equal', 0.002, 0.002, 3_000, 0],
    ['worse', 0.002, 0.02, 3_000, 0],
    ['quiet', 0.01, 0.01, 60, 0],
    ['dead', 0, 1, 600, 0],
    ['equal, late, of 16 workers', 0.02, 0.02, 3_000, 16],
    ['worse, late, of 4 workers', 0.02, 0.05, 3_000, 4],
  ])('decides as decideStep does: %s', (_name, stable, candidate, requestsPerMinute, workers) => {
    const random = seededRandom(7);
    const source = requestTraffic((arm) => [arm === 'stable' ? stable : candidate, 0.01 * (1 - candidate)], random);
    const late = { stableMs: 10_000, candidateMs: 2_000 };
    const traffic = workers > 0 ? reportedByWorkers(workers)(source, late) : source;
    const rule = new PerchRule({ policy, unit: 'request', metrics, requestsPerMinute });
    const epochs: EpochCounts[][] = metrics.map(() => []);
    let stepAtMs = 0;
    for (let atMs = 1_000; atMs <= 1_200_000; atMs += 1_000) {
      const share = rule.share;
      const sample = traffic(share, requestsPerMinute / 60, atMs);
      metrics.forEach((_, at) => {
        epochs[at]!.push({
          epoch: stepAtMs,
          share,
          stableEvents: (sample.split?.stable ?? sample.stable.x)[at]!,
          candidateEvents: (sample.split?.candidate ?? sample.candidate.x)[at]!,
        });
      });
      const stage = rule.stage === 'baking' ? 'baking' : 'shifting';
      const before = {
        stable: rule.units.stable.map((one) => ({ ...one })),
        candidate: rule.units.candidate.map((one) => ({ ...one })),
      };
      const end = rule.look(sample, atMs);
      const grown = (arm: 'stable' | 'candidate') =>
        before[arm].map(({ n, x }, at) => ({ n: n + sample[arm].n, x: x + sample[arm].x[at]! }));
      const whole = inputOf(rule, epochs, atMs - stepAtMs, requestsPerMinute);
      const [stables, candidates] = [grown('stable'), grown('candidate')];
      const decision = decideStep({
        ...whole,
        share,
        stage,
        metrics: whole.metrics.map((one, at) => ({ ...one, stable: stables[at]!, candidate: candidates[at]! })),
      });
      expect(decision.e).toBeCloseTo(rule.e(), 6);
      expect(decision.next === 'roll_back').toBe(end === 'rolled_back');
      if (rule.share !== share) {
        expect(decision).toMatchObject({ verdict: 'advance', share: rule.share });
        stepAtMs = atMs;
      }
      if (end) return;
    }
  });
});

describe('draws', () => {
  it.each([
    [20, 0.3],
    [1_000, 0.001],
    [1_000, 0.2],
    [1_000, 0.9],
    [5, 1],
    [0, 0.5],
    [100_000, 0.5],
  ])('drawBinomial(%i, %f) has its mean and its spread', (n, p) => {
    const random = seededRandom(11);
    const draws = Array.from({ length: 20_000 }, () => drawBinomial(random, n, p));
    const mean = draws.reduce((sum, x) => sum + x, 0) / draws.length;
    const variance = draws.reduce((sum, x) => sum + (x - mean) ** 2, 0) / draws.length;
    const spread = n * p * (1 - p);
    expect(Math.abs(mean - n * p)).toBeLessThanOrEqual(4.5 * Math.sqrt(spread / draws.length));
    expect(Math.abs(variance - spread)).toBeLessThanOrEqual(0.06 * spread);
    expect(draws.every((x) => x >= 0 && x <= n)).toBe(true);
  });

  it('drawBeta has its mean, also where nearly all of it lies at the ends', () => {
    const random = seededRandom(12);
    const draws = Array.from({ length: 40_000 }, () => drawBeta(random, 0.0025, 0.0475));
    expect(draws.reduce((sum, x) => sum + x, 0) / draws.length).toBeCloseTo(0.05, 2);
    expect(draws.filter((x) => x > 0.01 && x < 0.99).length / draws.length).toBeLessThan(0.05);
  });

  it('are the same for the same seed, and others for another stream', () => {
    const first = (seed: number, stream: number) => seededRandom(seed, stream)();
    expect(first(1, 2)).toBe(first(1, 2));
    expect(new Set([first(1, 2), first(1, 3), first(2, 2)]).size).toBe(3);
  });
});

describe('what is said before a rollout', () => {
  it('expects the time that trials take', () => {
    const at = (requestsPerSecond: number) =>
      expectedPromotionMs(policy, marginOf('error'), { requestsPerMinute: requestsPerSecond * 60, rate: 0.001 })! /
      60_000;
    expect(at(500)).toBeCloseTo(3, 0);
    expect(at(50)).toBeCloseTo(11, 0);
    expect(at(10)).toBeCloseTo(36, -1);
    expect(expectedPromotionMs(policy, marginOf('error'), { requestsPerMinute: 0, rate: 0 })).toBeNull();
  });

  it('finds the smallest margin that the time allows, and none without traffic', () => {
    const traffic = { requestsPerMinute: 600, rate: 0.001 };
    const found = smallestMargin(policy, traffic, 7_200_000)!;
    expect(expectedPromotionMs(policy, found, traffic)).toBeLessThanOrEqual(7_200_000);
    const smaller = { ...found, absolute: found.absolute * 0.97 };
    expect(expectedPromotionMs(policy, smaller, traffic)).toBeGreaterThan(7_200_000);
    expect(smallestMargin(policy, { requestsPerMinute: 0, rate: 0 }, 7_200_000)).toBeNull();
  });

  it('forecasts the same from the same seed, and lets others work in between', async () => {
    let pauses = 0;
    const pause = async () => {
      pauses += 1;
    };
    const forecast = { policy, requestsPerMinute: 3_000, errorRate: 0.001, source: 'a test', runs: 20, seed: 3 };
    const one = await simulateRollout(forecast, pause);
    expect(await simulateRollout(forecast)).toEqual(one);
    expect(pauses).toBeGreaterThan(100);
    expect(one.falseRollbackRate).toBeLessThanOrEqual(0.15);
    expect(one.medianPromoteMs).toBeGreaterThan(300_000);
    expect(one.smallestDetectable).toBeLessThan(0.02);
    expect(one.stops.at(-1)).toMatchObject({ errorRate: 1, rolledBack: 1 });
  });
});
