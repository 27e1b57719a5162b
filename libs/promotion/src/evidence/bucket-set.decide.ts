import { bucketCount, bucketsOf } from '@perch/contracts';
import { addBucket, type BucketSet, emptyBuckets } from '../statistics/buckets.decide.ts';

const bytes = bucketCount / 8;

export function setOf(buckets: Iterable<number>): BucketSet {
  const set = emptyBuckets();
  for (const bucket of buckets) addBucket(set, bucket);
  return set;
}

/** From the base64 of a report; undefined: it names buckets that there are not. */
export function readSet(base64: string | undefined): BucketSet | undefined {
  const given = Buffer.from(base64 ?? '', 'base64');
  if (given.length > bytes) return undefined;
  const set = emptyBuckets();
  set.set(given);
  return set;
}

/** For Postgres' `('x' || hex)::bit(n)`, which fills up with zeros. */
export const hexOf = (set: BucketSet): string => Buffer.from(set).toString('hex');

const bitsOf = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length);

export const sizeOf = (set: BucketSet): number => set.reduce((sum, byte) => sum + bitsOf[byte]!, 0);

/** Of a set only what this arm owns while the candidate has `share`: the candidate the lowest buckets, stable the others. */
export function sideOf(set: BucketSet, arm: 'stable' | 'candidate', share: number): BucketSet {
  const owned = bucketsOf(share);
  const at = owned >> 3;
  const low = (1 << (owned & 7)) - 1;
  const side = set.slice();
  if (arm === 'candidate') side.fill(0, at + 1);
  else side.fill(0, 0, at);
  if (at < bytes) side[at]! &= arm === 'candidate' ? low : ~low;
  return side;
}
