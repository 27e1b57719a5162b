import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rollbackEvidence } from '../statistics/rollback-evidence.decide.ts';
import { setOf, sizeOf } from './bucket-set.decide.ts';
import { countBuckets } from './buckets.decide.ts';

const hits = (epoch: number, share: number, stable: number[], candidate: number[]) => ({
  epoch,
  share,
  stable: setOf(stable),
  candidate: setOf(candidate),
});
const counts = (epoch: number, share: number, stableEvents: number, candidateEvents: number) => ({
  epoch,
  share,
  stableEvents,
  candidateEvents,
});

describe('countBuckets', () => {
  it.each([
    ['nothing', [], []],
    ['one epoch, each bucket once', [hits(1, 0.1, [2_000, 3_000], [1])], [counts(1, 0.1, 2, 1)]],
    [
      'a bucket of the candidate never counts again',
      [hits(1, 0.1, [], [1, 2]), hits(2, 0.5, [], [1, 2, 3])],
      [counts(1, 0.1, 0, 2), counts(2, 0.5, 0, 1)],
    ],
    [
      "a bucket of stable counts once more at a larger share, with w' = (w2 − w1) / (1 − w1)",
      [hits(1, 0.2, [3_000, 9_000], []), hits(2, 0.6, [9_000], [3_000])],
      [counts(1, 0.2, 2, 0), counts(2, 0.5, 1, 1)],
    ],
    [
      "what was not counted before counts with the epoch's own share",
      [hits(1, 0.2, [9_000], []), hits(2, 0.6, [9_000, 9_500], [100])],
      [counts(1, 0.2, 1, 0), counts(2, 0.5, 1, 0), counts(2, 0.6, 1, 1)],
    ],
    [
      'at the same share, and at a smaller one, a bucket of stable tells nothing',
      [hits(1, 0.2, [9_000], []), hits(2, 0.2, [9_000], []), hits(3, 0.1, [9_000, 8_000], [])],
      [counts(1, 0.2, 1, 0), counts(3, 0.1, 1, 0)],
    ],
    [
      'after a quiet epoch the share at which it was counted is the one that matters',
      [hits(1, 0.2, [9_000], []), hits(2, 0.4, [], []), hits(3, 0.6, [9_000], [])],
      [counts(1, 0.2, 1, 0), counts(3, 0.5, 1, 0)],
    ],
    ['without a share for the candidate nobody is counted', [hits(0, 0, [1, 2], [])], []],
  ])('%s', (_what, epochs, wanted) => {
    const found = countBuckets(epochs).epochs;
    expect(found.map((one) => ({ ...one, share: Number(one.share.toFixed(9)) }))).toEqual(wanted);
  });

  it('counts no bucket twice for the candidate, and names those it counted', () => {
    const bucket = fc.integer({ min: 0, max: 9_999 });
    const some = fc.uniqueArray(bucket, { maxLength: 60 });
    const epoch = fc.record({ share: fc.double({ min: 0.01, max: 0.99, noNaN: true }), stable: some, candidate: some });
    fc.assert(
      fc.property(fc.array(epoch, { maxLength: 6 }), (epochs) => {
        const given = epochs.map(({ share, stable, candidate }, at) => hits(at, share, stable, candidate));
        const { epochs: counted, candidates } = countBuckets(given);
        const total = counted.reduce((sum, { candidateEvents }) => sum + candidateEvents, 0);
        expect(total).toBe(sizeOf(candidates));
        expect(total).toBeLessThanOrEqual(new Set(epochs.flatMap(({ candidate }) => candidate)).size);
        for (const { share } of counted) expect(share > 0 && share < 1).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  /** Users of which some always fail: arms are equal, and yet the same few fail in every epoch. */
  it('does not roll back equal versions because of users who fail again and again', () => {
    let seed = 1;
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed / 2 ** 31;
    };
    let rolledBack = 0;
    for (let run = 0; run < 200; run += 1) {
      const failing = Array.from({ length: 25 }, () => Math.floor(random() * 10_000));
      const shares = [0.01, 0.05, 0.25, 0.5];
      const given = shares.map((share, at) => {
        const seen = failing.filter(() => random() < 0.7);
        return hits(at, share, seen.filter((one) => one >= share * 10_000), seen.filter((one) => one < share * 10_000)); // biome-ignore format: two halves
      });
      const worst = Math.max(
        ...shares.map((_, at) => rollbackEvidence(countBuckets(given.slice(0, at + 1)).epochs, 1)),
      );
      if (worst >= Math.log(20)) rolledBack += 1;
    }
    expect(rolledBack).toBeLessThanOrEqual(10);
  });
});
