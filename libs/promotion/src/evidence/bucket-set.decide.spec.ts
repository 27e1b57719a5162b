import { bucketCount, bucketSet, bucketsOf } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countBuckets, emptyBuckets, hasBucket } from '../statistics/buckets.decide.ts';
import { hexOf, readSet, setOf, sideOf, sizeOf } from './bucket-set.decide.ts';

const buckets = fc.uniqueArray(fc.integer({ min: 0, max: bucketCount - 1 }), { maxLength: 300 });
const textOf = (some: number[]) => Buffer.from(setOf(some)).toString('base64');

describe('sets of buckets', () => {
  it('come back from their text as they were', () => {
    fc.assert(
      fc.property(buckets, (some) => {
        expect(bucketSet.safeParse(textOf(some)).success).toBe(true);
        expect(readSet(textOf(some))).toEqual(setOf(some));
        expect(sizeOf(setOf(some))).toBe(some.length);
        expect(some.every((bucket) => hasBucket(setOf(some), bucket))).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  it("fall into two sides, the lower one of them the candidate's", () => {
    fc.assert(
      fc.property(buckets, fc.double({ min: 0, max: 1, noNaN: true }), (some, share) => {
        const [set, owned] = [setOf(some), bucketsOf(share)];
        const [candidate, stable] = [sideOf(set, 'candidate', share), sideOf(set, 'stable', share)];
        expect(sizeOf(candidate)).toBe(countBuckets(set, 0, owned));
        expect(sizeOf(stable)).toBe(countBuckets(set, owned));
        expect(sizeOf(candidate) + sizeOf(stable)).toBe(some.length);
      }),
      { numRuns: 20 },
    );
  });

  it.each([
    ['nothing', undefined, 0],
    ['an empty text', '', 0],
    ['the last bucket', textOf([9_999]), 1],
    ['all of them', Buffer.alloc(1_250, 255).toString('base64'), 10_000],
  ])('reads %s', (_what, text, size) => expect(sizeOf(readSet(text)!)).toBe(size));

  it('refuses buckets that there are not', () => {
    expect(readSet(Buffer.alloc(1_251, 1).toString('base64'))).toBeUndefined();
  });

  it('writes the bytes in their order for the database', () => {
    expect(hexOf(setOf([0, 9])).slice(0, 6)).toBe('010200');
    expect(hexOf(emptyBuckets())).toHaveLength(2_500);
  });
});
