import { bucketSet } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bucketsIn,
  emptySet,
  hasBucket,
  hexOf,
  joinSets,
  readSet,
  setOf,
  sizeOf,
  writeSet,
} from './bucket-set.decide.ts';

const buckets = fc.uniqueArray(fc.integer({ min: 0, max: 9_999 }), { maxLength: 300 });

describe('sets of buckets', () => {
  it('come back from their text as they were', () => {
    fc.assert(
      fc.property(buckets, (some) => {
        const text = writeSet(setOf(some));
        expect(bucketSet.safeParse(text).success).toBe(true);
        expect(readSet(text)).toEqual(setOf(some));
        expect(sizeOf(setOf(some))).toBe(some.length);
        expect(some.every((bucket) => hasBucket(setOf(some), bucket))).toBe(true);
        expect(bucketsIn(setOf(some), emptySet())).toEqual(some.toSorted((a, b) => a - b));
      }),
      { numRuns: 20 },
    );
  });

  it('are joined: in any order, any number of times', () => {
    fc.assert(
      fc.property(buckets, buckets, (one, other) => {
        const both = setOf([...one, ...other]);
        expect(joinSets([setOf(one), setOf(other)])).toEqual(both);
        expect(joinSets([both, setOf(other), both])).toEqual(both);
      }),
      { numRuns: 20 },
    );
  });

  it.each([
    ['nothing', undefined, 0],
    ['an empty text', '', 0],
    ['the last bucket', writeSet(setOf([9_999])), 1],
    ['all of them', Buffer.alloc(1_250, 255).toString('base64'), 10_000],
  ])('reads %s', (_what, text, size) => expect(sizeOf(readSet(text)!)).toBe(size));

  it('refuses buckets that there are not', () => {
    expect(readSet(Buffer.alloc(1_251, 1).toString('base64'))).toBeUndefined();
  });

  it('writes the bytes in their order for the database', () => {
    expect(hexOf(setOf([0, 9])).slice(0, 6)).toBe('010200');
    expect(hexOf(emptySet())).toHaveLength(2_500);
  });
});
