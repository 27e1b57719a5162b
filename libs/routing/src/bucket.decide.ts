import { bucketCount } from '@perch/contracts';

/**
 * MurmurHash3 (x86, 32 bits; Austin Appleby, public domain) over the UTF-16 code units of a text, low byte first. Not for
 * secrets: whoever knows the salt can compute it.
 */
export function hashText(text: string, seed: number): number {
  let hash = seed | 0;
  const even = text.length & ~1;
  for (let at = 0; at < even; at += 2) {
    hash ^= scramble(text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16));
    hash = (hash << 13) | (hash >>> 19);
    hash = (Math.imul(hash, 5) + 0xe6546b64) | 0;
  }
  if (even < text.length) hash ^= scramble(text.charCodeAt(even));
  hash ^= text.length * 2;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function scramble(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}

/** What is the same for all keys under one salt: hashed once, when the table is read. */
export const seedOf = (salt: string): number => hashText(salt, 0);

/** The bucket of a key, 0 to `bucketCount` − 1: the same in every router. `seed` is `seedOf(salt)`. */
export const bucketOf = (seed: number, key: string): number =>
  Math.floor((hashText(key, seed) / 0x1_0000_0000) * bucketCount);
