import type { Tensor } from '@perch/contracts/plain';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  asBytes, asFloat32, asInt32, asInt64, asUint8, bool, bytes, float32, int32, int64, uint64,
} from './tensor.ts'; // biome-ignore format: one row reads better

/** The same tensor at an odd place in memory, as a reply's body may hold it. */
function moved(tensor: Tensor): Tensor {
  const room = Buffer.alloc(tensor.bytes.length + 1);
  room.set(tensor.bytes, 1);
  return { ...tensor, bytes: room.subarray(1) };
}

describe('tensors', () => {
  it('hold the wire form: little-endian, row-major', () => {
    expect([...int32([1, -2], [2]).bytes]).toEqual([1, 0, 0, 0, 254, 255, 255, 255]);
    expect([...int64([1, -1n], [1, 2]).bytes]).toEqual([1, 0, 0, 0, 0, 0, 0, 0, ...Array(8).fill(255)]);
    expect([...bool([true, 0], [2]).bytes]).toEqual([1, 0]);
    expect([...bytes(['é', ''], [2]).bytes]).toEqual([2, 0, 0, 0, 0xc3, 0xa9, 0, 0, 0, 0]);
  });

  it('share memory with the typed array they are made of', () => {
    const values = Float32Array.of(1, 2);
    const tensor = float32(values, [2]);
    values[0] = 7;
    expect(asFloat32(tensor)[0]).toBe(7);
    expect(asFloat32(tensor).buffer).toBe(values.buffer);
  });

  it('give the same values back, aligned or not', () => {
    fc.assert(
      fc.property(fc.array(fc.float({ noNaN: true })), (values) => {
        const tensor = float32(values, [values.length]);
        expect([...asFloat32(tensor)]).toEqual(values);
        expect([...asFloat32(moved(tensor))]).toEqual(values);
      }),
    );
  });

  it('give texts and bytes back', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array()), (values) => {
        const tensor = moved(bytes(values, [values.length]));
        expect(asBytes(tensor).map((value) => [...value])).toEqual(values.map((value) => [...value]));
      }),
    );
  });

  it.each([
    ['a shape that wants more values', () => int32([1, 2, 3], [2, 2]), 'shape [2, 2] wants 4 values, got 3'],
    ['a view of another type', () => asInt64(int32([1], [1])), 'tensor is INT32, wanted INT64'],
    [
      'bytes that do not fill the shape',
      () => asInt32({ datatype: 'INT32', shape: [2], bytes: new Uint8Array(4) }),
      'wants 2 values, got 1',
    ],
    [
      'an element beyond the end',
      () => asBytes({ datatype: 'BYTES', shape: [1], bytes: Uint8Array.of(9, 0, 0, 0, 1) }),
      'element 0 ends beyond',
    ],
    [
      'half a length',
      () => asBytes({ datatype: 'BYTES', shape: [1], bytes: Uint8Array.of(9, 0) }),
      'element 0 ends beyond',
    ],
    [
      'a count of elements that is not the shape',
      () => asBytes({ ...bytes(['a'], [1]), shape: [2] }),
      'wants 2 values, got 1',
    ],
  ])('refuse %s', (_what, make, message) => {
    expect(make).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }));
  });

  it('take unsigned 64-bit values and bytes of BOOL', () => {
    expect(uint64([2n ** 64n - 1n], [1]).bytes).toEqual(new Uint8Array(8).fill(255));
    expect([...asUint8(bool([true, false], [2]))]).toEqual([1, 0]);
  });
});
