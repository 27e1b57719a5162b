import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  fromHalfBits,
  fromHalfBytes,
  type HalfType,
  halfTypes,
  roundToHalf,
  toHalfBits,
  toHalfBytes,
} from './half-number.ts';

describe('numbers of 16 bits', () => {
  it.each<[HalfType, number, number]>([
    ['FP16', 0, 0x0000],
    ['FP16', -0, 0x8000],
    ['FP16', 1, 0x3c00],
    ['FP16', -2, 0xc000],
    ['FP16', 0.1, 0x2e66],
    ['FP16', 65_504, 0x7bff],
    ['FP16', 65_519, 0x7bff],
    ['FP16', 65_520, 0x7c00],
    ['FP16', Number.NEGATIVE_INFINITY, 0xfc00],
    ['FP16', 2 ** -14, 0x0400],
    ['FP16', 2 ** -24, 0x0001],
    ['FP16', 2 ** -25, 0x0000], // half of the smallest one: to the even neighbour
    ['FP16', 1 + 2 ** -11, 0x3c00],
    ['FP16', 1 + 3 * 2 ** -11, 0x3c02],
    ['BF16', 1, 0x3f80],
    ['BF16', -2, 0xc000],
    ['BF16', 0.3, 0x3e9a],
    ['BF16', 3.3895313892515355e38, 0x7f7f],
    ['BF16', 3.4e38, 0x7f80],
    ['BF16', 2 ** -133, 0x0001],
  ])('%s %s', (datatype, value, bits) => {
    expect(toHalfBits(datatype, value).toString(16)).toBe(bits.toString(16));
  });

  it('are all read and written back as they were', () => {
    for (const datatype of halfTypes)
      for (let bits = 0; bits < 65_536; bits += 1) {
        const value = fromHalfBits(datatype, bits);
        if (!Number.isNaN(value)) expect(toHalfBits(datatype, value)).toBe(bits);
        else expect(fromHalfBits(datatype, toHalfBits(datatype, value))).toBeNaN();
      }
  });

  it('are the upper half of the nearest FP32 where they are BF16', () => {
    const words = new DataView(new ArrayBuffer(4));
    for (let bits = 0; bits < 65_536; bits += 1) {
      words.setUint32(0, bits * 65_536);
      expect(fromHalfBits('BF16', bits)).toEqual(words.getFloat32(0));
    }
  });

  it('are never further away than another number of the form', () => {
    const value = fc.oneof(fc.double({ noNaN: true, min: -70_000, max: 70_000 }), fc.double({ noNaN: true }));
    fc.assert(
      fc.property(fc.constantFrom(...halfTypes), value, (datatype, wanted) => {
        const bits = toHalfBits(datatype, wanted);
        const off = Math.abs(fromHalfBits(datatype, bits) - wanted);
        if (!Number.isFinite(off)) return;
        for (const other of [bits - 1, bits + 1].filter((one) => (one & 0x7fff) < 0x7c00 && one >= 0))
          expect(Math.abs(fromHalfBits(datatype, other) - wanted)).toBeGreaterThanOrEqual(off);
        expect(roundToHalf(datatype, roundToHalf(datatype, wanted))).toBe(roundToHalf(datatype, wanted));
      }),
    );
  });

  it('go through a tensor’s bytes', () => {
    const bytes = toHalfBytes('FP16', [1, -2, 0.5]);
    expect([...bytes]).toEqual([0, 0x3c, 0, 0xc0, 0, 0x38]);
    expect(fromHalfBytes('FP16', Buffer.concat([Buffer.alloc(1), bytes]).subarray(1))).toEqual([1, -2, 0.5]);
  });
});
