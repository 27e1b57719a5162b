import { type DataType, dataTypes } from '@perch/contracts/plain';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asBytes, asFloats, float32, nestedOf, tensor } from './index.ts';

const ranges: Partial<Record<DataType, [number, number]>> = {
  INT8: [-128, 127], INT16: [-32_768, 32_767], INT32: [-2_147_483_648, 2_147_483_647],
  UINT8: [0, 255], UINT16: [0, 65_535], UINT32: [0, 4_294_967_295],
}; // biome-ignore format: one row reads better

const valueFor = (datatype: DataType): fc.Arbitrary<unknown> => {
  const range = ranges[datatype];
  if (range) return fc.integer({ min: range[0], max: range[1] });
  switch (datatype) {
    case 'BOOL':
      return fc.boolean();
    case 'BYTES':
      return fc.uint8Array({ maxLength: 5 }).map((one) => new Uint8Array(one));
    case 'INT64':
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    case 'UINT64':
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    case 'FP64':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'FP32':
      return fc.float({ noNaN: true, noDefaultInfinity: true });
    default:
      return fc.integer({ min: -128, max: 128 });
  }
};

describe('tensor', () => {
  it.each(dataTypes)('%s: nested lists come back as they were', (datatype) => {
    const rows = fc.integer({ min: 1, max: 3 }).chain((columns) =>
      fc.array(fc.array(valueFor(datatype), { minLength: columns, maxLength: columns }), {
        minLength: 1,
        maxLength: 3,
      }),
    );
    fc.assert(
      fc.property(rows, (values) => {
        const made = tensor(datatype, values);
        expect(made.shape).toEqual([values.length, values[0]!.length]);
        const again = nestedOf(made) as Uint8Array[][];
        expect(datatype === 'BYTES' ? again.map((row) => row.map((one) => Uint8Array.from(one))) : again).toEqual(
          values,
        );
      }),
      { numRuns: 30 },
    );
  });

  it('takes a typed array of the very type without a copy, and others by their values', () => {
    const floats = Float32Array.of(1, 2);
    expect(tensor('FP32', floats, [1, 2]).bytes.buffer).toBe(floats.buffer);
    expect(nestedOf(tensor('INT64', Int32Array.of(1, -2), [2, 1]))).toEqual([[1n], [-2n]]);
    expect(nestedOf(tensor('UINT8', Buffer.from([7, 8])))).toEqual([7, 8]);
    expect(nestedOf(tensor('FP16', Float32Array.of(0.5, 65_504), [2]))).toEqual([0.5, 65_504]);
    expect(nestedOf(tensor('FP32', 3))).toBe(3);
    expect(asBytes(tensor('BYTES', ['é', 'a'], [2, 1])).map((one) => Buffer.from(one).toString())).toEqual(['é', 'a']);
  });

  it.each([
    ['UINT8', [1, 256], undefined, 'UINT8 tensor: value 1 is 256, wanted a whole number from 0 to 255 for UINT8'],
    ['UINT8', Int16Array.of(-1), [1], 'UINT8 tensor: value 0 is -1, wanted a whole number from 0 to 255 for UINT8'],
    ['INT32', [1.5], undefined, 'INT32 tensor: value 0 is 1.5, wanted a whole number'],
    ['INT64', [2n ** 63n], undefined, 'INT64 tensor: value 0 is 9223372036854775808, wanted a whole number from'],
    ['FP32', [[1, 2], [3]], undefined, 'FP32: ragged lists: at [1] wanted 2 elements'],
    ['FP32', [1, 2, 3], [2, 2], 'FP32 tensor: shape [2, 2] wants 4 values, got 3'],
    ['FP32', Float32Array.of(1), [2], 'FP32 tensor: shape [2] wants 2 values, got 1'],
    ['FP16', [65_520], undefined, 'FP16 tensor: value 0 is 65520, wanted within the range of FP16'],
    ['FP32', ['a'], undefined, 'FP32 tensor: value 0 is a string, wanted a number for FP32'],
    ['BOOL', [2], undefined, 'BOOL tensor: value 0 is 2, wanted true, false, 1 or 0 for BOOL'],
    ['BYTES', [5], undefined, 'BYTES tensor: value 0 is a number, wanted a string'],
  ] as const)('refuses %s of a value at fault (%#)', (datatype, values, shape, message) => {
    expect(() => tensor(datatype, values, shape)).toThrow(message);
  });

  it('reads floating-point tensors as float32', () => {
    for (const datatype of ['FP16', 'BF16', 'FP32', 'FP64'] as const)
      expect([...asFloats(tensor(datatype, [1, -0.5]))]).toEqual([1, -0.5]);
    expect(() => asFloats(tensor('INT8', [1]))).toThrow('tensor is INT8, wanted FP32');
    const values = Float32Array.of(4, 5);
    expect(asFloats(float32(values, [2])).buffer).toBe(values.buffer);
  });
});
