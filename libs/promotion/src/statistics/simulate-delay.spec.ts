import { rolloutPolicy } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { seededRandom } from './simulate-chance.ts';
import { closedByWorkers, type FailureDelays, reportedByWorkers } from './simulate-delay.ts';
import { delayCases, falseRollbackRate } from './simulate-null.ts';
import { PerchRule } from './simulate-rule.ts';
import { requestTraffic } from './simulate-traffic.ts';

/** Chosen once, before the first run. */
const seed = 20_256;
const runs = 80;
const stableLate = { stableMs: 10_000, candidateMs: 0 };
const candidateLate = { stableMs: 0, candidateMs: 10_000 };
const named = delayCases.map((nullCase) => [nullCase.name, nullCase] as const);

describe('equal versions whose failures show at different speeds', () => {
  it.each(named)('are falsely rolled back in 5 % at most, by one worker and by 16: %s', (_name, nullCase) => {
    for (const workers of [1, 16])
      expect(falseRollbackRate(nullCase, seed, runs, reportedByWorkers(workers))).toBeLessThanOrEqual(0.05);
  });
  it('would go back where each worker counts its own whole cohorts', () => {
    const [, worst] = named.find(([, { p, delays }]) => p === 0.05 && delays!.stableMs > 0)!;
    expect(falseRollbackRate(worst, seed, runs, closedByWorkers(16))).toBeGreaterThan(0.3);
  });
});

describe('the evidence of what has ended', () => {
  const metrics = [
    { metric: 'error', r0: 1 },
    { metric: 'slow', r0: 1.25 },
  ];
  /** E at each look, of a candidate that is twice as bad. */
  const watch = (delays: FailureDelays, workers: number, mostMs: number): number[] => {
    const random = seededRandom(seed);
    const source = requestTraffic((arm) => (arm === 'stable' ? [0.02, 0.01] : [0.04, 0.01]), random);
    const traffic = reportedByWorkers(workers)(source, delays);
    const settings = { policy: rolloutPolicy.parse({}), unit: 'request', metrics, requestsPerMinute: 3_000 } as const;
    const rule = new PerchRule({ ...settings, fixedShare: 0.25, withoutRollback: true });
    return Array.from({ length: mostMs / 1_000 }, (_, at) => {
      rule.look(traffic(0.25, at < 120 ? 50 : 0, (at + 1) * 1_000), (at + 1) * 1_000);
      return rule.e();
    });
  };

  it.each([
    ['stable late', stableLate, 1],
    ['stable late', stableLate, 16],
    ['the candidate late', candidateLate, 16],
    ['both late', { stableMs: 4_000, candidateMs: 7_000 }, 4],
  ])('is never above what it will be, and is that in the end: %s, %#', (_name, delays, workers) => {
    const early = watch(delays, workers, 130_000);
    const known = watch({ stableMs: 0, candidateMs: 0 }, workers, 130_000);
    early.forEach((e, at) => {
      expect(e).toBeLessThanOrEqual(known[at]! * (1 + 1e-9));
    });
    expect(Math.log(early.at(-1)!)).toBeCloseTo(Math.log(known.at(-1)!), 6);
    expect(early.some((e, at) => e < known[at]! / 1.5)).toBe(true);
  });
});
