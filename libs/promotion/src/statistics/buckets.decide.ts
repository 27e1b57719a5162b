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
 * Events for the rollback rule. A bucket counts in an epoch at most once, and never again once it counted as the candidate's.
 * One that counted as stable's at share w₁ lies above w₁, so at a larger share w₂ it may count once more: then as the
 * candidate's with the chance `w' = (w₂−w₁)/(1−w₁)` when both arms are equal, however often its user errs. So one epoch
 * gives an entry for each w₁ from which buckets came (0: never counted). Counting requests instead would take one user
 * who always fails for many witnesses.
 */
export function bucketCounts(epochs: readonly EpochBuckets[]): EpochCounts[] {
  const countedAt = new Uint16Array(bucketCount); // buckets that the candidate owned when it counted as stable's; 0: never
  const spent = emptyBuckets();
  return epochs.flatMap(({ epoch, share, stable, candidate }) => {
    const owned = bucketsOf(share);
    const groups = new Map<number, EpochCounts>();
    for (let bucket = 0; bucket < bucketCount; bucket += 1) {
      const isCandidate = bucket < owned;
      if (!hasBucket(isCandidate ? candidate.hit : stable.hit, bucket)) continue;
      const before = countedAt[bucket]!;
      if (hasBucket(spent, bucket) || (before > 0 && before >= owned)) continue;
      const group = groups.get(before) ?? emptyGroup(epoch, (owned - before) / (bucketCount - before));
      groups.set(before, group);
      if (isCandidate) {
        group.candidateEvents += 1;
        addBucket(spent, bucket);
      } else {
        group.stableEvents += 1;
        countedAt[bucket] = owned;
      }
    }
    return [...groups.values()];
  });
}

const emptyGroup = (epoch: number, share: number): EpochCounts => ({
  epoch,
  share,
  stableEvents: 0,
  candidateEvents: 0,
});
