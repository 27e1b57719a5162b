import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { finiteExp, logGamma, logSumExp, stirlingError } from './log-math.ts';

describe('logGamma', () => {
  it.each([
    [1, 0],
    [2, 0],
    [0.5, Math.log(Math.sqrt(Math.PI))],
    [5, Math.log(24)],
    [11, Math.log(3_628_800)],
    [171, 706.5730622457874],
    [1e9, 19_723_265_827.50372],
  ])('of %f', (z, wanted) => {
    const found = logGamma(z);
    expect(Math.abs(found - wanted)).toBeLessThanOrEqual(1e-13 * Math.max(1, Math.abs(wanted)));
  });

  it('grows by ln z', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 1e6, noNaN: true }), (z) => {
        const [one, next] = [logGamma(z), logGamma(z + 1)];
        expect(Math.abs(next - one - Math.log(z))).toBeLessThanOrEqual(1e-12 * Math.max(1, Math.abs(next)));
      }),
    );
  });
});

it('stirlingError falls from ln(e/√2π) towards 1/12x', () => {
  expect(stirlingError(1)).toBeCloseTo(1 - 0.5 * Math.log(2 * Math.PI), 12);
  expect(stirlingError(1e6) * 12e6).toBeCloseTo(1, 10);
});

describe('logSumExp', () => {
  it('of nothing is −∞', () => expect(logSumExp([])).toBe(Number.NEGATIVE_INFINITY));

  it('neither over- nor underflows', () => {
    expect(logSumExp([1e9, 1e9])).toBe(1e9 + Math.log(2));
    expect(logSumExp([-1e9, -1e9])).toBe(-1e9 + Math.log(2));
    expect(logSumExp([Number.NEGATIVE_INFINITY, 3])).toBe(3);
  });

  it('is what the plain sum is, where that can be computed', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: -50, max: 50, noNaN: true }), { minLength: 1 }), (terms) => {
        const plain = Math.log(terms.reduce((sum, term) => sum + Math.exp(term), 0));
        expect(Math.abs(logSumExp(terms) - plain)).toBeLessThanOrEqual(1e-12 * Math.max(1, Math.abs(plain)));
      }),
    );
  });
});

it('finiteExp stays finite', () => {
  expect(finiteExp(1e9)).toBe(Math.exp(700));
  expect(finiteExp(0)).toBe(1);
});
