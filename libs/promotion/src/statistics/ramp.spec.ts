import { rolloutPolicy } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allowedGap, marginFor, marginOf } from './margin.decide.ts';
import { clockStepMs, droppedShare, firstShare, nextShare, sharesOf } from './ramp.decide.ts';

const auto = rolloutPolicy.parse({});
const steps = rolloutPolicy.parse({ ramp: 'steps', weightsPercent: [10, 30, 60] });
const clock = rolloutPolicy.parse({
  ramp: 'clock',
  clock: [
    { weightPercent: 10, forMs: 1_000 },
    { weightPercent: 50, forMs: 2_000 },
  ],
});
const reading = (gap: number, margin = 0.005) => ({ gap, margin });

describe('firstShare', () => {
  it.each([
    ['a busy endpoint begins with the smallest', auto, 30_000, 0.01],
    ['a quiet one with 5 %', auto, 100, 0.05],
    ['just too busy for that', auto, 101, 0.01],
    ['no traffic at all', auto, 0, 0.05],
    ['never beyond 5 %', rolloutPolicy.parse({ weightsPercent: [1, 2, 3, 10] }), 1, 0.03],
    ['the smallest where all are larger', rolloutPolicy.parse({ weightsPercent: [20, 40] }), 1, 0.2],
    ['a budget of none', rolloutPolicy.parse({ badBudgetPerMinute: 0 }), 10, 0.01],
    ['steps begin with the first', steps, 1, 0.1],
    ['and so does a clock', clock, 1, 0.1],
  ])('%s', (_name, policy, requestsPerMinute, wanted) => expect(firstShare(policy, requestsPerMinute)).toBe(wanted));
});

describe('nextShare', () => {
  it.each([
    ['nothing known', auto, 0.01, [reading(1)], 30_000, 0.01],
    ['the overall rate is provably within the margin', auto, 0.01, [reading(0.02)], 30_000, 0.25],
    ['all of it', auto, 0.01, [reading(0.01)], 30_000, 0.5],
    ['within the budget of bad requests', auto, 0.01, [reading(0.3)], 300, 0.05],
    ['the worst metric decides', auto, 0.01, [reading(0.01), reading(0.09)], 30_000, 0.05],
    ['each by its own margin', auto, 0.01, [reading(0.01), reading(0.04, 0.02)], 30_000, 0.5],
    ['it does not fall', auto, 0.25, [reading(1)], 30_000, 0.25],
    ['nothing above the last', auto, 0.5, [reading(0)], 30_000, 0.5],
    ['from a weight between two', auto, 0.1, [reading(0.02)], 30_000, 0.25],
    ['nothing to judge by', auto, 0.01, [], 1, 0.01],
    ['steps go one at a time', steps, 0.1, [reading(0.001)], 30_000, 0.3],
    ['and know no budget', steps, 0.1, [reading(0.5)], 1, 0.1],
    ['a clock asks nobody', clock, 0.1, [reading(1)], 30_000, 0.5],
    ['and ends', clock, 0.5, [], 30_000, 0.5],
  ])('%s', (_name, policy, share, readings, requestsPerMinute, wanted) =>
    expect(nextShare(policy, share, readings, requestsPerMinute)).toBe(wanted),
  );

  it('never falls, and what it gives is within the margin or the budget', () => {
    const readings = fc.array(
      fc.record({ gap: fc.double({ min: -0.1, max: 1, noNaN: true }), margin: fc.constantFrom(0.005, 0.02) }),
      { minLength: 1, maxLength: 4 },
    );
    const rate = fc.double({ min: 0, max: 100_000, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(...sharesOf(auto)), readings, rate, (share, given, requestsPerMinute) => {
        const next = nextShare(auto, share, given, requestsPerMinute);
        expect(next).toBeGreaterThanOrEqual(share);
        if (next > share)
          for (const { gap, margin } of given)
            expect(next * gap <= margin || next * gap * requestsPerMinute <= auto.badBudgetPerMinute).toBe(true);
      }),
    );
  });
});

describe('droppedShare', () => {
  const rates = (requestsPerMinute: number, requestsPerMinuteNow: number) => ({
    requestsPerMinute,
    requestsPerMinuteNow,
  });
  it.each([
    ['as much traffic as ever', auto, 0.25, [{ ...reading(0.3), stepGap: 0.1 }], rates(200, 200), null],
    ['five times as much', auto, 0.25, [{ ...reading(0.3), stepGap: 0.1 }], rates(200, 1_000), 0.05],
    ['but the gap is small by now', auto, 0.25, [{ ...reading(0.03), stepGap: 0.1 }], rates(200, 1_000), null],
    ['but the margin allows the weight', auto, 0.25, [{ ...reading(0.3), stepGap: 0.01 }], rates(200, 10_000), null],
    ['no gap was noted: within the budget of then', auto, 0.25, [reading(0.9)], rates(100, 399), null],
    ['and beyond four of them', auto, 0.25, [reading(0.9)], rates(100, 401), 0.05],
    ['there is no smaller weight', auto, 0.01, [reading(0.9)], rates(100, 100_000), null],
    ['steps stay', steps, 0.3, [reading(0.9)], rates(100, 100_000), null],
  ])('%s', (_name, policy, share, readings, given, wanted) =>
    expect(droppedShare(policy, share, readings, given)).toBe(wanted),
  );
});

it('clockStepMs is that of the step the share lies on', () => {
  expect([0.05, 0.1, 0.3, 0.5, 0.9].map((share) => clockStepMs(clock, share))).toEqual([
    1_000, 1_000, 1_000, 2_000, 2_000,
  ]);
  expect(clockStepMs(auto, 0.1)).toBeNull();
});

describe('margins', () => {
  it('are half a point or a fifth, for slow two points or two fifths', () => {
    expect([0, 0.02, 0.1].map((lower) => allowedGap(marginOf('error'), lower))).toEqual([0.005, 0.005, 0.2 * 0.1]);
    expect([0, 0.02, 0.1].map((lower) => allowedGap(marginOf('slow'), lower))).toEqual([0.02, 0.02, 0.4 * 0.1]);
  });

  it('are those of the policy first, then those found by themselves', () => {
    const own = { absolute: 0.1, relative: 0 };
    const found = { absolute: 0.2, relative: 0 };
    const policy = rolloutPolicy.parse({
      error: { margin: own },
      contract: false,
      flags: [{ name: 'bad', margin: own }],
    });
    expect(marginFor(policy, 'error', found)).toEqual(own);
    expect(marginFor(policy, 'bad')).toEqual(own);
    expect(marginFor(policy, 'slow', found)).toEqual(found);
    expect(marginFor(policy, 'slow')).toEqual(marginOf('slow'));
    expect(marginFor(policy, 'contract')).toEqual(marginOf('contract'));
  });
});
