import { bucketCount, bucketsOf, type EpochCounts } from '@perch/contracts';

/**
 * The rules for users under a sticky key, shared by the merging of evidence and by the simulations. A set of buckets is a
 * bitmap as in `bucketSet` of the contracts: bit b of byte b >> 3 is bucket b.
 */
export type BucketSet = Uint8Array;

/** Buckets of one arm in one epoch: those judged, and those with an event. */
export interface ArmBuckets {
  seen: BucketSet;
  hit: BucketSet;
}

/** One metric in one epoch of one weight; epochs are given in their order. */
export interface EpochBuckets {
  epoch: number;
  /** Candidate's share of the traffic. */
  share: number;
  stable: ArmBuckets;
  candidate: ArmBuckets;
}

export const emptyBuckets = (): BucketSet => new Uint8Array(bucketCount / 8);
export const hasBucket = (set: BucketSet, bucket: number): boolean =>
  ((set[bucket >> 3] ?? 0) & (1 << (bucket & 7))) !== 0;
export function addBucket(set: BucketSet, bucket: number): void {
  set[bucket >> 3]! |= 1 << (bucket & 7);
}

/** All buckets of several reports: in any order, and any of them twice. */
export function joinBuckets(sets: readonly BucketSet[]): BucketSet {
  const joined = emptyBuckets();
  for (const set of sets) for (let at = 0; at < joined.length; at += 1) joined[at]! |= set[at] ?? 0;
  return joined;
}

/** How many buckets from `from` up to, not including, `until` are in the set. */
export function countBuckets(set: BucketSet, from = 0, until = bucketCount): number {
  let count = 0;
  for (let bucket = from; bucket < until; bucket += 1) if (hasBucket(set, bucket)) count += 1;
  return count;
}

/** Units of the current epoch for promotion: buckets judged, and those of them with an event; each only on its own side. */
export function bucketTally({ share, stable, candidate }: Omit<EpochBuckets, 'epoch'>) {
  const owned = bucketsOf(share);
  const tally = ({ seen, hit }: ArmBuckets, from: number, until: number) => ({
    n: countBuckets(joinBuckets([seen, hit]), from, until),
    x: countBuckets(hit, from, until),
  });
  return { stable: tally(stable, owned, bucketCount), candidate: tally(candidate, 0, owned) };
}

/**
 * Which events count for the rollback rule. A bucket that counted as the candidate's never counts again. One that counted as
 * stable's at share w₁ lies, if both arms are equal, anywhere in [w₁, 1): at a larger share w₂ it may count once more, and is
 * the candidate's with the chance `w' = (w₂−w₁)/(1−w₁)`, however often its user errs. At a share that is not larger it is
 * stable's for sure and tells nothing. Counting requests instead would take one user who always fails for many witnesses.
 */
export class BucketBook {
  /** How many buckets the candidate owned when this one counted last; 0: it never did. */
  private readonly countedAt = new Uint16Array(bucketCount);

  /** The share w' that an event of this bucket counts with while the candidate owns the lowest `owned`; null: it does not count. */
  count(bucket: number, owned: number): number | null {
    const before = this.countedAt[bucket]!;
    if (owned === 0 || (before > 0 && (before >= owned || before > bucket))) return null;
    this.countedAt[bucket] = owned;
    return (owned - before) / (bucketCount - before);
  }
}

/** Events of one metric for the rollback rule. One epoch gives an entry for each share with which buckets of it count. */
export function bucketCounts(epochs: readonly EpochBuckets[]): EpochCounts[] {
  const book = new BucketBook();
  return epochs.flatMap(({ epoch, share: weight, stable, candidate }) => {
    const owned = bucketsOf(weight);
    const entries = new Map<number, EpochCounts>();
    for (let bucket = 0; bucket < bucketCount; bucket += 1) {
      if ((bucket & 7) === 0 && !(candidate.hit[bucket >> 3] || stable.hit[bucket >> 3])) {
        bucket += 7; // most users have no event: eight at once
        continue;
      }
      const isCandidate = bucket < owned;
      if (!hasBucket(isCandidate ? candidate.hit : stable.hit, bucket)) continue;
      const share = book.count(bucket, owned);
      if (share === null) continue;
      const entry = entries.get(share) ?? { epoch, share, stableEvents: 0, candidateEvents: 0 };
      entries.set(share, entry);
      if (isCandidate) entry.candidateEvents += 1;
      else entry.stableEvents += 1;
    }
    return [...entries.values()];
  });
}
