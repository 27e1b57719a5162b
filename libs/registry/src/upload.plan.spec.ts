import { maxFileBytes } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { donePartNumbers, partBytes, planParts, singlePutBytes } from './upload.plan.ts';

const mebibyte = 1024 ** 2;

describe('planParts', () => {
  it.each([
    [0, null],
    [singlePutBytes, null],
    [singlePutBytes + 1, { partSize: 16 * mebibyte, partCount: 3 }],
    [90 * mebibyte, { partSize: 16 * mebibyte, partCount: 6 }],
    [maxFileBytes, { partSize: 205 * mebibyte, partCount: 1_000 }],
  ])('%s bytes', (size, plan) => expect(planParts(size)).toEqual(plan));

  it('parts add up to the file, and keep the limits of S3 and of one answer', () => {
    fc.assert(
      fc.property(fc.integer({ min: singlePutBytes + 1, max: maxFileBytes }), (size) => {
        const plan = planParts(size)!;
        const last = partBytes(size, plan, plan.partCount);
        expect(plan.partSize * (plan.partCount - 1) + last).toBe(size);
        expect(last).toBeGreaterThan(0);
        expect(last).toBeLessThanOrEqual(plan.partSize);
        expect(plan.partCount).toBeLessThanOrEqual(1_000);
        expect(plan.partSize).toBeGreaterThanOrEqual(5 * mebibyte);
      }),
    );
  });
});

describe('donePartNumbers', () => {
  const size = 40 * mebibyte;
  const plan = planParts(size)!; // 16 + 16 + 8 MiB
  const part = (partNumber: number, mebibytes: number) => ({ partNumber, sizeBytes: mebibytes * mebibyte });
  it.each([
    ['nothing there', [], []],
    ['out of order', [part(3, 8), part(1, 16)], [1, 3]],
    ['a cut one counts as missing', [part(1, 15), part(2, 16)], [2]],
    ['the last one is short', [part(3, 16)], []],
    ['numbers that are none of ours', [part(0, 16), part(4, 16)], []],
  ])('%s', (_case, stored, done) => expect(donePartNumbers(size, plan, stored)).toEqual(done));
});
