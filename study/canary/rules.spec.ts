import { describe, expect, it } from 'vitest';
import type { Rule } from '../../libs/promotion/src/statistics/simulate-rule.ts';
import { MannWhitneyRule, shiftOf } from './mann-whitney.rule.ts';
import { ThresholdRule } from './threshold.rule.ts';
import { ZTestRule, zOf } from './z-test.rule.ts';

/** The end after so many minutes that look alike, and the minute it came in. */
function endOf(rule: Rule, minutes: number, stable: [number, number], candidate: [number, number]) {
  for (let minute = 1; minute <= minutes; minute += 1) {
    const sample = { stable: { n: stable[0], x: [stable[1]] }, candidate: { n: candidate[0], x: [candidate[1]] } };
    const end = rule.look(sample, minute * 60_000);
    if (end) return { end, minute };
  }
  return null;
}

describe('ThresholdRule', () => {
  it.each([
    ['five empty minutes go back', [9, 0], [0, 0], { end: 'rolled_back', minute: 5 }],
    ['five minutes above 1 % errors go back', [900, 0], [100, 2], { end: 'rolled_back', minute: 5 }],
    ['five good minutes promote', [900, 0], [100, 1], { end: 'promoted', minute: 5 }],
  ] as const)('%s', (_name, stable, candidate, wanted) => {
    expect(endOf(new ThresholdRule(), 60, [...stable], [...candidate])).toEqual(wanted);
  });
});

describe('MannWhitneyRule', () => {
  it.each([
    ['equal arms are promoted after three hours', [900, 9], [100, 1], { end: 'promoted', minute: 180 }],
    ['a clear shift goes back after one', [900, 9], [100, 5], { end: 'rolled_back', minute: 60 }],
    ['without values there is no score', [9, 0], [0, 0], { end: 'rolled_back', minute: 60 }],
  ] as const)('%s', (_name, stable, candidate, wanted) => {
    expect(endOf(new MannWhitneyRule(), 200, [...stable], [...candidate])).toEqual(wanted);
  });

  it('estimates the shift by the median difference', () => {
    const base = Array.from({ length: 40 }, (_, at) => at);
    const { lower, estimate } = shiftOf(
      base.map((x) => x + 10),
      base,
    );
    expect(estimate).toBeCloseTo(10, 0);
    expect(lower).toBeGreaterThan(0);
    expect(lower).toBeLessThan(10);
  });
});

describe('ZTestRule', () => {
  it.each([
    ['equal arms are promoted after an hour', [900, 9], [100, 1], { end: 'promoted', minute: 60 }],
    ['a clear difference goes back at once', [900, 9], [100, 10], { end: 'rolled_back', minute: 1 }],
    ['nothing seen is promoted', [0, 0], [0, 0], { end: 'promoted', minute: 60 }],
  ] as const)('%s', (_name, stable, candidate, wanted) => {
    expect(endOf(new ZTestRule(), 90, [...stable], [...candidate])).toEqual(wanted);
  });

  it('has the textbook value', () => {
    expect(zOf({ stable: { n: 200, x: 20 }, candidate: { n: 100, x: 20 } })).toBeCloseTo(2.4019, 3);
  });
});
