import { bucketCount, bucketsOf } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addBucket, BucketBook, type BucketSet, bucketCounts, bucketTally, countBuckets, emptyBuckets, hasBucket, joinBuckets } from './buckets.decide.ts'; // biome-ignore format: one list

const setOf = (buckets: readonly number[]): BucketSet => {
  const set = emptyBuckets();
  for (const bucket of buckets) addBucket(set, bucket);
  return set;
};
const hits = (epoch: number, share: number, stable: number[], candidate: number[]) => ({
  epoch,
  share,
  stable: { seen: setOf(stable), hit: setOf(stable) },
  candidate: { seen: setOf(candidate), hit: setOf(candidate) },
});
const counts = (epoch: number, share: number, stableEvents: number, candidateEvents: number) => ({
  epoch,
  share,
  stableEvents,
  candidateEvents,
});

describe('bucketCounts', () => {
  it.each([
    ['nothing', [], []],
    ['one epoch, each bucket once', [hits(1, 0.1, [2_000, 3_000], [1])], [counts(1, 0.1, 2, 1)]],
    [
      "a bucket of the candidate's never counts again",
      [hits(1, 0.1, [], [1, 2]), hits(2, 0.5, [], [1, 2, 3])],
      [counts(1, 0.1, 0, 2), counts(2, 0.5, 0, 1)],
    ],
    [
      "one of stable's counts once more at a larger share, with w' = (w2 − w1) / (1 − w1)",
      [hits(1, 0.2, [3_000, 9_000], []), hits(2, 0.6, [9_000], [3_000])],
      [counts(1, 0.2, 2, 0), counts(2, 0.5, 1, 1)],
    ],
    [
      'at the same share, and at a smaller one, it tells nothing',
      [hits(1, 0.2, [9_000], []), hits(2, 0.2, [9_000], []), hits(3, 0.1, [9_000, 8_000], [])],
      [counts(1, 0.2, 1, 0), counts(3, 0.1, 1, 0)],
    ],
    [
      'after a quiet epoch the share at which it counted is the one that matters',
      [hits(1, 0.2, [9_000], []), hits(2, 0.4, [], []), hits(3, 0.6, [9_000], [])],
      [counts(1, 0.2, 1, 0), counts(3, 0.5, 1, 0)],
    ],
    [
      "after a fall a bucket that was the candidate's is not stable's witness",
      [hits(1, 0.5, [], [3_000]), hits(2, 0.1, [3_000], []), hits(3, 0.5, [], [3_000])],
      [counts(1, 0.5, 0, 1)],
    ],
    ["what an arm says of the other's buckets is not heard", [hits(1, 0.1, [5], [5_000])], []],
    ['without a share for the candidate nobody counts', [hits(0, 0, [1, 2], [])], []],
  ])('%s', (_name, epochs, wanted) => {
    expect(bucketCounts(epochs).map((one) => ({ ...one, share: Number(one.share.toFixed(9)) }))).toEqual(wanted);
  });

  it('takes each bucket for the candidate once at most', () => {
    const some = fc.uniqueArray(fc.integer({ min: 0, max: bucketCount - 1 }), { maxLength: 60 });
    const share = fc.double({ min: 0, max: 0.99, noNaN: true });
    const epochs = fc.array(fc.tuple(share, some, some), { maxLength: 6 });
    fc.assert(
      fc.property(epochs, (given) => {
        const counted = bucketCounts(given.map(([w, stable, candidate], at) => hits(at, w, stable, candidate)));
        const onCandidate = given.flatMap(([w, , candidate]) => candidate.filter((bucket) => bucket < bucketsOf(w)));
        const events = counted.reduce((sum, { candidateEvents }) => sum + candidateEvents, 0);
        expect(events).toBeLessThanOrEqual(new Set(onCandidate).size);
        for (const { share: w } of counted) expect(w > 0 && w <= 1).toBe(true);
      }),
    );
  });

  it('says the chance of an equal candidate: over all places of a bucket above w1, w′ of them are its own', () => {
    const [before, owned] = [2_500, 5_000];
    let onCandidate = 0;
    const chances = new Set<number | null>();
    for (let bucket = before; bucket < bucketCount; bucket += 1) {
      const book = new BucketBook();
      book.count(bucket, before);
      chances.add(book.count(bucket, owned));
      if (bucket < owned) onCandidate += 1;
    }
    expect([...chances]).toEqual([onCandidate / (bucketCount - before)]);
  });
});

describe('sets of buckets', () => {
  it('join in any order, and twice is once', () => {
    const some = fc.uniqueArray(fc.integer({ min: 0, max: bucketCount - 1 }), { maxLength: 40 });
    fc.assert(
      fc.property(some, some, (one, other) => {
        const joined = joinBuckets([setOf(one), setOf(other), setOf(one)]);
        expect(joined).toEqual(joinBuckets([setOf(other), setOf(one)]));
        expect(countBuckets(joined)).toBe(new Set([...one, ...other]).size);
        for (const bucket of one) expect(hasBucket(joined, bucket)).toBe(true);
      }),
    );
  });

  it('bucketTally counts each arm on its own side', () => {
    const seen = hits(1, 0.1, [10, 1_000, 5_000], [999, 1_000]);
    expect(bucketTally(seen)).toEqual({ stable: { n: 2, x: 2 }, candidate: { n: 1, x: 1 } });
  });
});
