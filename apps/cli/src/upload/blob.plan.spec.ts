import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf, planPieces } from './blob.plan.ts';

const put = (size: number, sha256 = 'a') => ({
  sha256,
  size,
  method: 'put' as const,
  url: 'u',
  uploadId: 'x',
  expiresAt: '',
});

describe('what is still to send', () => {
  it('is a single PUT for a small blob, the empty one too', () => {
    expect(planPieces([put(0)])).toEqual([
      { sha256: 'a', url: 'u', headers: {}, start: 0, end: 0, label: 'the whole' },
    ]);
  });
  it('is the biggest first', () => {
    expect(planPieces([put(1, 'a'), put(3, 'b'), put(2, 'c')]).map(({ sha256 }) => sha256)).toEqual(['b', 'c', 'a']);
  });
  it('covers every byte of a multipart blob once, finished parts left out', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5_000 }),
        fc.integer({ min: 1, max: 700 }),
        fc.array(fc.integer({ min: 1, max: 30 })),
        (size, partSize, done) => {
          const count = Math.ceil(size / partSize);
          const parts = Array.from({ length: count }, (_, at) => ({ partNumber: at + 1, url: `u${at + 1}` }));
          const blob = {
            ...put(size),
            method: 'multipart' as const,
            partSize,
            partCount: count,
            parts,
            partsDone: done,
          };
          const pieces = planPieces([blob]);
          const left = parts.filter(({ partNumber }) => !done.includes(partNumber));
          expect(pieces.map(({ url }) => url)).toEqual(left.map(({ url }) => url));
          for (const { start, end } of pieces) expect(end - start).toBeGreaterThan(0);
          if (done.length === 0) expect(bytesOf(pieces)).toBe(size);
          for (const [at, piece] of pieces.entries())
            if (at > 0 && done.length === 0) expect(piece.start).toBe(pieces[at - 1]?.end);
        },
      ),
    );
  });
});
