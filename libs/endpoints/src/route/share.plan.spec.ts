import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ShareWish, sharesOf } from './share.plan.ts';

const is = (weight: number): ShareWish => ({ weight, present: true });
const missing = (weight: number): ShareWish => ({ weight, present: false });

describe('sharesOf', () => {
  it.each<[string, ShareWish[], number[]]>([
    ['nothing', [], []],
    ['one', [is(7)], [1]],
    ['brought to a sum of 1', [is(90), is(10)], [0.9, 0.1]],
    ['a missing one goes to the heaviest that is left', [missing(50), is(30), is(20)], [0, 0.8, 0.2]],
    ['the heaviest missing', [is(10), is(20), missing(70)], [0.1, 0.9, 0]],
    ['the first of equals', [is(1), is(1), missing(2)], [0.75, 0.25, 0]],
    ['weight zero gets nothing', [is(0), is(1)], [0, 1]],
    ['unless nothing that has weight can serve', [is(0), missing(1), is(0)], [1, 0, 0]],
    ['nothing can serve', [missing(1), missing(2)], [0, 0]],
    ['no weights at all', [is(0), is(0)], [1, 0]],
  ])('%s', (_name, wishes, shares) => {
    const found = sharesOf(wishes);
    expect(found.length).toBe(shares.length);
    for (const [at, share] of found.entries()) expect(share).toBeCloseTo(shares[at]!, 12);
  });

  it('takes the last resort it is told', () => {
    expect(sharesOf([is(0), is(0), missing(1)], 1)).toEqual([0, 1, 0]);
  });

  it('always adds to 1 when something is present, gives nothing to what is not, and widens one share at most', () => {
    const wish = fc.record({ weight: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e6, noNaN: true })), present: fc.boolean() }); // biome-ignore format: one row reads better
    fc.assert(
      fc.property(fc.array(wish, { maxLength: 12 }), (wishes) => {
        const shares = sharesOf(wishes);
        const sum = shares.reduce((all, share) => all + share, 0);
        const total = wishes.reduce((all, { weight }) => all + weight, 0);
        expect(Math.abs(sum - (wishes.some(({ present }) => present) ? 1 : 0))).toBeLessThan(1e-9);
        expect(shares.filter((share, at) => share !== 0 && !wishes[at]!.present)).toEqual([]);
        const wider = shares.filter((share, at) => share > (total > 0 ? wishes[at]!.weight / total : 0) + 1e-9);
        expect(wider.length).toBeLessThanOrEqual(1);
      }),
    );
  });
});
