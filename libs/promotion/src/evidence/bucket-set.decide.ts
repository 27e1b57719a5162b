import { bucketCount } from '@perch/contracts';

/** A set of buckets: bit b & 7 of byte b >> 3 is bucket b. */
export type BucketSet = Uint8Array;

const bytes = bucketCount / 8;

export const emptySet = (): BucketSet => new Uint8Array(bytes);

export function setOf(buckets: Iterable<number>): BucketSet {
  const set = emptySet();
  for (const bucket of buckets) set[bucket >> 3]! |= 1 << (bucket & 7);
  return set;
}

/** From the base64 of a report; undefined: it names buckets that there are not. */
export function readSet(base64: string | undefined): BucketSet | undefined {
  const given = Buffer.from(base64 ?? '', 'base64');
  if (given.length > bytes) return undefined;
  const set = emptySet();
  set.set(given);
  return set;
}

export const writeSet = (set: BucketSet): string => {
  const last = set.findLastIndex((byte) => byte !== 0);
  return Buffer.from(set.subarray(0, last + 1)).toString('base64');
};

/** For Postgres' `('x' || hex)::bit(n)`, which fills up with zeros. */
export const hexOf = (set: BucketSet): string => Buffer.from(set).toString('hex');

export const joinSets = (sets: readonly BucketSet[]): BucketSet => {
  const joined = emptySet();
  for (const set of sets) for (let at = 0; at < bytes; at += 1) joined[at]! |= set[at]!;
  return joined;
};

const bitsOf = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length);

export const sizeOf = (set: BucketSet): number => set.reduce((sum, byte) => sum + bitsOf[byte]!, 0);

export const hasBucket = (set: BucketSet, bucket: number): boolean => (set[bucket >> 3]! & (1 << (bucket & 7))) !== 0;

/** The buckets that are in one of both, in order. */
export function bucketsIn(one: BucketSet, other: BucketSet): number[] {
  const found: number[] = [];
  for (let at = 0; at < bytes; at += 1)
    for (let rest = one[at]! | other[at]!; rest !== 0; rest &= rest - 1)
      found.push(8 * at + 31 - Math.clz32(rest & -rest));
  return found;
}
