import type { EpochCounts } from '@perch/contracts';
import { BucketBook } from '../statistics/buckets.decide.ts';
import { type BucketSet, bucketsIn, hasBucket, setOf } from './bucket-set.decide.ts';

/** Buckets with an event in one epoch, by the arm that they were on. */
export interface EpochHits {
  epoch: number;
  /** Candidate's share of all buckets. */
  share: number;
  stable: BucketSet;
  candidate: BucketSet;
}

export interface BucketCounts {
  /** Of one epoch several entries, one for each share among the buckets that could be counted. */
  epochs: EpochCounts[];
  /** Buckets that were counted for the candidate. */
  candidates: BucketSet;
}

/** Events of one metric under a sticky key, where the unit is the bucket: `BucketBook` has the rule. `hits`: oldest epoch first. */
export function countBuckets(hits: readonly EpochHits[]): BucketCounts {
  const book = new BucketBook();
  const candidates: number[] = [];
  const epochs = hits.flatMap(({ epoch, share, stable, candidate }) => {
    const byShare = new Map<number, EpochCounts>();
    for (const bucket of bucketsIn(stable, candidate)) {
      const arm = hasBucket(candidate, bucket) ? 'candidate' : 'stable';
      const chance = book.count(bucket, arm, share);
      if (chance === null) continue;
      const counts = byShare.get(chance) ?? { epoch, share: chance, stableEvents: 0, candidateEvents: 0 };
      counts[`${arm}Events`] += 1;
      byShare.set(chance, counts);
      if (arm === 'candidate') candidates.push(bucket);
    }
    return [...byShare.values()].sort((one, other) => one.share - other.share);
  });
  return { epochs, candidates: setOf(candidates) };
}
