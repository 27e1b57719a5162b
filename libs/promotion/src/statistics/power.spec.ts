import { describe, expect, it } from 'vitest';
import { rollbackEvidence } from './rollback-evidence.decide.ts';
import { median } from './simulate-trial.ts';
import { allMetrics, compare, errorAlone } from './simulate-worse.ts';

const seed = 20_252;

describe('power at a weight of 25 %', () => {
  it.each([
    [0.01, 0.05],
    [0.001, 0.01],
  ])(
    'a rise from %f to %f is rolled back in 99 of 100 runs',
    (stable, candidate) => {
      const wish = {
        stable,
        candidate,
        requestsPerSecond: 50,
        fixedShare: 0.25,
        mostRequests: 20_000,
        intervalMs: 1_000,
      };
      const trials = compare({ ...wish, policy: allMetrics }, seed, 1_000);
      expect(trials.filter(({ end }) => end === 'rolled_back').length / trials.length).toBeGreaterThanOrEqual(0.99);
    },
    60_000,
  );

  it('three failures of a candidate beside a stable without any are enough', () => {
    const e = (candidateEvents: number) =>
      Math.exp(rollbackEvidence([{ share: 0.25, stableEvents: 0, candidateEvents }], 1));
    expect(e(2)).toBeLessThan(20);
    expect(e(3)).toBeGreaterThanOrEqual(20);
  });
});

describe('a dead candidate at 10 requests a second', () => {
  const dead = { stable: 0, candidate: 1, requestsPerSecond: 10, mostRequests: 20_000 };

  it('stops after a median of 3 candidate requests at 25 %, looked at after each', () => {
    const trials = compare({ ...dead, policy: errorAlone, fixedShare: 0.25, intervalMs: 100 }, seed, 500);
    expect(trials.every(({ end }) => end === 'rolled_back')).toBe(true);
    expect(median(trials.map(({ candidateRequests }) => candidateRequests))).toBeLessThanOrEqual(3);
  });

  it('stops after a median of 3 candidate requests by the ramp, with all default metrics, looked at at each report', () => {
    const trials = compare({ ...dead, policy: allMetrics, intervalMs: 1_000 }, seed, 500);
    expect(trials.every(({ end }) => end === 'rolled_back')).toBe(true);
    expect(median(trials.map(({ candidateRequests }) => candidateRequests))).toBeLessThanOrEqual(3);
  });
});
