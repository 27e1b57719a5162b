import { describe, expect, it } from 'vitest';
import { median } from './simulate-trial.ts';
import { type Comparison, compare, errorAlone } from './simulate-worse.ts';

const seed = 20_253;
const minuteMs = 60_000;

/** Worse by the margin exactly, and nothing rolls it back: only the bounds stand between it and everybody. */
describe('promotion of a version that is worse by the margin', () => {
  const base = { policy: errorAlone, withoutRollback: true, requestsPerSecond: 50, mostMs: 120 * minuteMs } as const;
  it.each<[string, Comparison, number]>([
    ['0.1 % against 0.6 %', { ...base, stable: 0.001, candidate: 0.006 }, 500],
    ['5 % against 6 %', { ...base, stable: 0.05, candidate: 0.06 }, 500],
    ['both × 3 for 5 minutes, 0.1 %', { ...base, stable: 0.001, candidate: 0.006, tripledMs: 5 * minuteMs }, 500],
    ['both × 3 for 5 minutes, 5 %', { ...base, stable: 0.05, candidate: 0.06, tripledMs: 5 * minuteMs }, 500],
    [
      '10,000 users of a sticky key',
      { ...base, stable: 0.001, candidate: 0.006, users: 10_000, requestsPerSecond: 20, mostMs: 50 * minuteMs },
      500,
    ],
  ])(
    '%s: in at most 2.5 % of the runs',
    (_name, comparison, runs) => {
      const promoted = compare(comparison, seed, runs).filter(({ bakeAtMs }) => bakeAtMs !== null).length;
      expect(promoted / runs).toBeLessThanOrEqual(0.025);
    },
    60_000,
  );
});

describe('time to promote an equal version by the ramp auto, errors alone at 0.1 %', () => {
  it.each([
    [500, 4],
    [50, 13],
    [10, 40],
  ])(
    'at %i requests a second: a median of %i minutes at most',
    (requestsPerSecond, mostMinutes) => {
      const equal = { stable: 0.001, candidate: 0.001, requestsPerSecond, policy: errorAlone, intervalMs: 1_000 };
      const times = compare({ ...equal, mostMs: 120 * minuteMs }, seed, 200).map(
        ({ bakeAtMs }) => bakeAtMs ?? Number.POSITIVE_INFINITY,
      );
      expect(median(times)).toBeLessThanOrEqual(mostMinutes * minuteMs);
    },
    60_000,
  );
});
