import { type DecisionInput, rolloutPolicy } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstTime, predictNextStepMs } from './prediction.decide.ts';

const margin = { absolute: 0.005, relative: 0.2 };
const arms = (stable: [number, number], candidate: [number, number]) => [
  {
    metric: 'error',
    r0: 1,
    margin,
    epochs: [],
    stable: { n: stable[0], x: stable[1] },
    candidate: { n: candidate[0], x: candidate[1] },
  },
];
const input = (fields: Partial<DecisionInput>): DecisionInput => ({
  policy: rolloutPolicy.parse({}),
  unit: 'request',
  share: 0.5,
  stage: 'shifting',
  sinceStepMs: 60_000,
  sinceEvidenceMs: 0,
  requestsPerMinute: 600,
  requestsPerMinuteNow: 600,
  candidateEvents: 0,
  metrics: arms([300, 0], [300, 0]),
  pairs: null,
  ...fields,
});

describe('predictNextStepMs', () => {
  it.each([
    ['without traffic', { requestsPerMinuteNow: 0 }],
    ['without a share', { share: 0 }],
    ['without a metric', { metrics: [] }],
    ['where the candidate is worse', { metrics: arms([30_000, 30], [30_000, 900]) }],
    [
      'where the users of the candidate are all seen',
      { unit: 'bucket' as const, share: 0.01, metrics: arms([9_900, 0], [100, 9]) },
    ],
  ])('cannot say %s', (_name, fields) => expect(predictNextStepMs(input(fields))).toBeNull());

  it('says when as many requests are in as the margin asks', () => {
    // 0 of n is provably within half a point from about n = 2,200 on: 1,900 more at 300 a minute
    const minutes = predictNextStepMs(input({}))! / 60_000;
    expect(minutes).toBeGreaterThan(5.5);
    expect(minutes).toBeLessThan(7.5);
  });

  it('is never before the dwell is over, and at once where the evidence is in', () => {
    const proved = arms([30_000, 30], [30_000, 30]);
    expect(predictNextStepMs(input({ metrics: proved, sinceStepMs: 20_000 }))).toBe(40_000);
    expect(predictNextStepMs(input({ metrics: proved, sinceStepMs: 90_000 }))).toBe(0);
  });
});

describe('firstTime', () => {
  it('finds where a condition begins to hold, a few hundredths late at most', () => {
    const begin = fc.double({ min: 20_000, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(begin, (at) => {
        const found = firstTime(0, (ms) => ms >= at)!;
        expect(found).toBeGreaterThanOrEqual(at);
        expect(found).toBeLessThanOrEqual(1.04 * at);
      }),
    );
  });

  it('gives up after 30 days', () => expect(firstTime(0, () => false)).toBeNull());
});
