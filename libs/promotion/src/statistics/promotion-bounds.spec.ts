import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { logGamma } from './log-math.ts';
import { promotionBounds } from './promotion-bounds.decide.ts';

const a = 0.025;
/** ln of what the definition holds against 1/a, as it is written there. */
const logRatio = (x: number, n: number, p: number) =>
  logGamma(1 + x) + logGamma(1 + n - x) - logGamma(2 + n) - x * Math.log(p) - (n - x) * Math.log1p(-p);

const counts = fc
  .tuple(fc.integer({ min: 1, max: 1_000_000 }), fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([n, part]) => ({ n, x: Math.floor(part * n) }));

describe('promotionBounds', () => {
  it.each([
    [0, 0, 0, 1],
    [0, 100, 0, 0.0796856658],
    [1, 1, 0.0125, 1],
    [3, 1_000, 0.0000541336, 0.0172476154],
    [500, 1_000, 0.4413907841, 0.5586092159],
    [100, 100, 0.9203143342, 1],
  ])('%i of %i', (x, n, lower, upper) => {
    const bounds = promotionBounds(x, n, a);
    expect(bounds.lower).toBeCloseTo(lower, 9);
    expect(bounds.upper).toBeCloseTo(upper, 9);
  });

  it('ends where the definition reaches 1/a', () => {
    fc.assert(
      fc.property(counts, ({ x, n }) => {
        const { lower, upper } = promotionBounds(x, n, a);
        for (const [bound, exists] of [
          [lower, x > 0],
          [upper, x < n],
        ] as const)
          if (exists && bound > 1e-9 && bound < 1 - 1e-9)
            expect(Math.abs(logRatio(x, n, bound) + Math.log(a))).toBeLessThanOrEqual(1e-4);
      }),
    );
  });

  it('holds the share seen, mirrors, and narrows with more of the same', () => {
    fc.assert(
      fc.property(counts, ({ x, n }) => {
        const bounds = promotionBounds(x, n, a);
        expect(bounds.lower).toBeGreaterThanOrEqual(0);
        expect(bounds.lower).toBeLessThanOrEqual(x / n);
        expect(bounds.upper).toBeGreaterThanOrEqual(x / n);
        expect(bounds.upper).toBeLessThanOrEqual(1);
        expect(promotionBounds(n - x, n, a).upper).toBeCloseTo(1 - bounds.lower, 12);
        const tenfold = promotionBounds(10 * x, 10 * n, a);
        expect(tenfold.upper - tenfold.lower).toBeLessThan(bounds.upper - bounds.lower);
      }),
    );
  });

  it.each([0, 1, 2, 1_000, 5e8, 1e9 - 1, 1e9])('is safe with %i events of a billion', (x) => {
    const { lower, upper } = promotionBounds(x, 1e9, a);
    expect(lower).toBeGreaterThanOrEqual(0);
    expect(upper).toBeLessThanOrEqual(1);
    expect(upper - lower).toBeGreaterThan(0);
    expect(upper - lower).toBeLessThan(0.0002);
  });

  it('takes more events than trials for all of them, and parts of events for what they are', () => {
    expect(promotionBounds(7, 5, a)).toEqual(promotionBounds(5, 5, a));
    const { lower, upper } = promotionBounds(0.2, 40.5, a);
    expect(lower).toBeGreaterThan(0);
    expect(upper).toBeGreaterThan(promotionBounds(0, 40.5, a).upper);
  });
});
