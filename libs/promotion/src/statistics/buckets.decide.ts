import { bucketCount } from '@perch/contracts';

const never = -1;
const spent = 2;

/**
 * The rule for users under a sticky key, for one metric of one rollout: which events count for the rollback rule, and with
 * what share. Used where reports are merged (`countBuckets` of the evidence) and by the simulations. Users of unequal
 * manners err on either arm again and again; counting requests would take one who always fails for many witnesses. So:
 * a bucket that counted as the candidate's never counts again. One that counted as stable's at share w₁ lies, if both arms
 * are equal, anywhere in [w₁, 1): at a larger share w₂ it may count once more, and is the candidate's with the chance
 * `w' = (w₂−w₁)/(1−w₁)`. At a share that is not larger it is stable's for sure and tells nothing.
 */
export class BucketBook {
  /** The share at which a bucket counted last as stable's; or that it never did, or never counts again. */
  private readonly countedAt = new Float64Array(bucketCount).fill(never);

  /** The share w' that this event counts with in θ while the candidate has `share`; null: it does not count. */
  count(bucket: number, arm: 'stable' | 'candidate', share: number): number | null {
    const before = this.countedAt[bucket]!;
    if (before === spent) return null;
    const chance = before === never ? share : (share - before) / (1 - before);
    if (chance > 0) this.countedAt[bucket] = share;
    if (arm === 'candidate') this.countedAt[bucket] = spent;
    return chance > 0 ? chance : null;
  }
}
