/** Spreads the bits of a seed (the finalizer of MurmurHash3), so that neighbouring seeds begin far apart. */
function spread(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/**
 * Numbers from 0 up to but not including 1, of 53 random bits each: sfc32 (Chris Doty-Humphrey's Small Fast Counting
 * generator, 128 bits of state). The same seed, a safe integer, gives the same numbers on every machine and release.
 */
export function seededRandom(seed: number): () => number {
  let a = spread(seed % 0x100000000);
  let b = spread(Math.floor(seed / 0x100000000) ^ 0x9e3779b9);
  let c = spread(a ^ b);
  let counter = 1;
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 12; i++) next();
  return () => ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000;
}
