import type { Tensors } from '@perch/contracts/plain';
import { describe, expect, it } from 'vitest';
import { bfloat16, bool, bytes, float16, float32, float64, int8, int64, uint64 } from '../tensor.ts';
import { writeReply } from './reply.ts';

const write = (outputs: Tensors, form: 'named' | 'tensors' = 'named') => writeReply(outputs, form).toString();

describe('the reply', () => {
  it("names with nested lists of the model's own shape", () => {
    const outputs = { y: float32([1, 0.1, -3, 4], [2, 2]), n: int8([-1], [1]), deep: float64([1, 2], [1, 2, 1]) };
    expect(write(outputs)).toBe('{"y":[[1,0.1],[-3,4]],"n":[-1],"deep":[[[1],[2]]]}');
  });

  it('the protocol form to whom spoke it', () => {
    expect(JSON.parse(write({ y: float32([1, 2], [1, 2]), s: bytes(['a'], [1, 1]) }, 'tensors'))).toEqual({
      outputs: [
        { name: 'y', datatype: 'FP32', shape: [1, 2], data: [1, 2] },
        { name: 's', datatype: 'BYTES', shape: [1, 1], data: ['a'] },
      ],
    });
  });

  it('every type, in full digits, and null for what JSON does not have', () => {
    const outputs = {
      i: int64([2n ** 62n, -1], [2]), u: uint64([2n ** 64n - 1n], [1]), t: bool([1, 0], [2]), s: bytes(['日"', Uint8Array.of(0xff)], [2]),
      f: float32([Number.NaN, Number.POSITIVE_INFINITY], [2]), d: float64([Number.NEGATIVE_INFINITY, 0.1], [2]),
    }; // biome-ignore format: a table
    expect(write(outputs)).toBe(
      '{"i":[4611686018427387904,-1],"u":[18446744073709551615],"t":[true,false],"s":["日\\"",{"b64":"/w=="}],"f":[null,null],"d":[null,0.1]}',
    );
  });

  it('outputs without values', () => {
    expect(write({ y: float32([], [0, 4]), z: float32([], [2, 0]), s: float32([5], []) })).toBe(
      '{"y":[],"z":[[],[]],"s":[5]}',
    );
  });

  it('half floats as the numbers that they are', () => {
    expect(write({ y: float16([1, -2.5, 65_504], [1, 3]), z: bfloat16([3, Number.NaN], [2]) })).toBe(
      '{"y":[[1,-2.5,65504]],"z":[3,null]}',
    );
  });
});
