/**
 * One byte range of `Range: bytes=…` cut to the object; undefined: send the whole (no header, or one that HTTP lets us
 * ignore); 'outside': 416.
 */
export function byteRange(
  header: string | undefined,
  sizeBytes: number,
): { first: number; last: number } | 'outside' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return undefined;
  if (match[1] === '') {
    const count = Math.min(Number(match[2]), sizeBytes);
    return count === 0 ? 'outside' : { first: sizeBytes - count, last: sizeBytes - 1 };
  }
  const first = Number(match[1]);
  const last = Math.min(match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]), sizeBytes - 1);
  if (match[2] !== '' && Number(match[2]) < first) return undefined;
  return first >= sizeBytes ? 'outside' : { first, last };
}
