import { bucketCount, type EpochCounts } from '@perch/contracts';
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

const fresh = -1;
const spent = 2;

/**
 * Users of unequal manners fail on any arm again and again, so under a sticky key the unit is the bucket (design of the
 * canary, "Rollback"). One counted for the candidate never counts again. One counted for stable at share w1 lies, if both
 * arms are equal, anywhere in [w1, 1), so at w2 it may count once more, and is the candidate's with chance
 * w' = (w2 − w1) / (1 − w1). At a share that is not larger it is stable's for sure and tells nothing.
 * `hits`: oldest epoch first.
 */
export function countBuckets(hits: readonly EpochHits[]): BucketCounts {
  const last = new Float64Array(bucketCount).fill(fresh);
  const candidates: number[] = [];
  const epochs = hits.flatMap(({ epoch, share, stable, candidate }) => {
    const byShare = new Map<number, EpochCounts>();
    const count = (bucket: number, arm: 'stableEvents' | 'candidateEvents'): boolean => {
      const before = last[bucket]!;
      const chance = before === fresh ? share : (share - before) / (1 - before);
      if (chance <= 0) return false;
      const counts = byShare.get(chance) ?? { epoch, share: chance, stableEvents: 0, candidateEvents: 0 };
      counts[arm] += 1;
      byShare.set(chance, counts);
      return true;
    };
    for (const bucket of bucketsIn(stable, candidate)) {
      if (last[bucket] === spent) continue;
      if (hasBucket(candidate, bucket)) {
        if (count(bucket, 'candidateEvents')) candidates.push(bucket);
        last[bucket] = spent;
      } else if (count(bucket, 'stableEvents')) last[bucket] = share;
    }
    return [...byShare.values()].sort((one, other) => one.share - other.share);
  });
  return { epochs, candidates: setOf(candidates) };
}
