import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Body } from './body.ts';

it('holds what was appended, in order, also in rooms used before', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(300_000), { maxLength: 8 }), fc.boolean(), fc.nat(255), (sizes, announced, seed) => {
      const total = sizes.reduce((sum, size) => sum + size, 0);
      const source = Buffer.alloc(total);
      for (let i = 0; i < total; i += 997) source[i] = (i + seed) % 256;
      const body = new Body(announced ? total : undefined);
      let at = 0;
      for (const size of sizes) {
        const piece = Buffer.from(source.subarray(at, at + size));
        body.append(piece, 0, size);
        piece.fill(1);
        at += size;
      }
      expect(body.size).toBe(total);
      expect(Buffer.concat(body.pieces()).equals(source)).toBe(true);
      if (announced && total <= 1_048_576) expect(body.pieces().length).toBeLessThan(2);
      body.recycle();
    }),
    { numRuns: 40 },
  );
});
