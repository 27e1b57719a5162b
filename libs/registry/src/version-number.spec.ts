import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstFree } from './version-number.service.ts';

describe('firstFree', () => {
  it('finds the first number after those taken, in few looks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 0, max: 100_000 }),
        async (from, taken) => {
          let looks = 0;
          const isTaken = async (number: number) => {
            looks += 1;
            return number < from + taken;
          };
          expect(await firstFree(from, isTaken)).toBe(from + taken);
          expect(looks).toBeLessThanOrEqual(2 * Math.log2(taken + 2) + 3);
        },
      ),
    );
  });
});
