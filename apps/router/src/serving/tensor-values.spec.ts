import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasBrokenNumber, valuesOf } from './tensor-values.ts';

const bytesOf = (view: ArrayBufferView): Uint8Array => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
/** The same bytes one place further, where no wider type may lie. */
const shifted = (bytes: Uint8Array): Uint8Array => {
  const room = new Uint8Array(bytes.length + 1);
  room.set(bytes, 1);
  return room.subarray(1);
};
const whole = { INT8: Int8Array, UINT16: Uint16Array, INT32: Int32Array, UINT32: Uint32Array } as const;
const float = { FP32: Float32Array, FP64: Float64Array } as const;
const [nan, plus, minus] = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];

/** Bit patterns: quiet and signalling NaN of both signs, infinities, the greatest number, 1, 0, −0, a denormal. */
const halves: [number, boolean, number][] = [
  [0x7e00, true, nan], [0x7c01, true, nan], [0xfe00, true, nan], [0xfc01, true, nan], [0x7c00, true, plus],
  [0xfc00, false, minus], [0x7bff, false, 65_504], [0xfbff, false, -65_504], [0x3c00, false, 1], [0, false, 0],
  [0x8000, false, -0], [1, false, 2 ** -24], [0x3555, false, 0.333251953125],
]; // biome-ignore format: a table
const brainHalves: [number, boolean, number][] = [
  [0x7fc0, true, nan], [0x7f81, true, nan], [0xffc0, true, nan], [0x7f80, true, plus], [0xff80, false, minus],
  [0x3f80, false, 1], [0xc000, false, -2], [0, false, 0],
]; // biome-ignore format: a table

describe('numbers that no model means to answer', () => {
  it.each([
    ['FP32', Float32Array],
    ['FP64', Float64Array],
  ] as const)('%s', (type, make) => {
    for (const [values, broken] of [
      [[1, -2.5, 0], false], [[minus, 1], false], [[1, nan], true], [[plus], true], [[0, 1, 2, 3, nan], true], [[], false],
    ] as const) // biome-ignore format: a table
      for (const bytes of [bytesOf(make.from(values)), shifted(bytesOf(make.from(values)))])
        expect([values, hasBrokenNumber(type, bytes)]).toEqual([values, broken]);
  });

  it.each([
    ['FP16', halves],
    ['BF16', brainHalves],
  ] as const)('%s by its bits', (type, table) => {
    for (const [bits, broken, value] of table) {
      const bytes = bytesOf(Uint16Array.of(0, bits, 0));
      expect([bits, hasBrokenNumber(type, bytes), hasBrokenNumber(type, shifted(bytes))]).toEqual([
        bits,
        broken,
        broken,
      ]);
      expect(Array.from(valuesOf(type, shifted(bytes))!)).toEqual([0, value, 0]);
    }
  });

  it('never in text or whole numbers', () => {
    for (const type of ['BYTES', 'INT32', 'INT64', 'BOOL', 'UINT8'])
      expect(hasBrokenNumber(type, new Uint8Array(16).fill(0xff))).toBe(false);
  });

  it('finds one wherever it stands, and none where there is none', () => {
    fc.assert(
      fc.property(fc.constantFrom('FP32', 'FP64'), fc.array(fc.double(), { maxLength: 40 }), (type, values) => {
        const rounded = float[type as 'FP32'].from(values);
        const expected = Array.from(rounded).some((value) => Number.isNaN(value) || value === plus);
        expect(hasBrokenNumber(type, bytesOf(rounded))).toBe(expected);
      }),
    );
  });
});

describe('values of a tensor', () => {
  it.each(Object.entries(whole))('%s', (type, make) => {
    const values = make.of(0, 1, 127);
    expect(Array.from(valuesOf(type, shifted(bytesOf(values)))!)).toEqual([0, 1, 127]);
  });

  it('takes 64-bit whole numbers as doubles, and has none for text', () => {
    expect(Array.from(valuesOf('INT64', bytesOf(BigInt64Array.of(-3n, 2n ** 40n)))!)).toEqual([-3, 2 ** 40]);
    expect(Array.from(valuesOf('UINT64', shifted(bytesOf(BigUint64Array.of(7n))))!)).toEqual([7]);
    expect(valuesOf('BYTES', Buffer.from('abc'))).toBeUndefined();
  });
});
