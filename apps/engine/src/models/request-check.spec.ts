import { bytesOfElements, type InferRequest, type NamedTensor } from '@perch/triton/server';
import { describe, expect, it } from 'vitest';
import { checkRequest } from './request-check.ts';
import { declaredModel, fillShape } from './signature.ts';

const model = declaredModel({
  name: 'm',
  max_batch_size: 4,
  input: [
    { name: 'x', data_type: 'TYPE_FP32', dims: [-1] },
    { name: 'note', data_type: 'TYPE_STRING', dims: [1], optional: true },
  ],
  output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [-1] }],
});
const x = (rows: number, length: number, over: Partial<NamedTensor> = {}): NamedTensor => ({
  name: 'x',
  datatype: 'FP32',
  shape: [rows, length],
  bytes: new Uint8Array(4 * rows * length),
  ...over,
});
const note = (...texts: string[]): NamedTensor => ({
  name: 'note',
  datatype: 'BYTES',
  shape: [texts.length, 1],
  bytes: bytesOfElements(texts.map((text) => Buffer.from(text))),
});
const request = (...inputs: NamedTensor[]): InferRequest => ({ modelName: 'm', id: 'r1', inputs });

describe('checkRequest', () => {
  it('gives rows, and one key for requests that may be computed together', () => {
    const first = checkRequest(model, request(x(2, 3)));
    expect(first.rows).toBe(2);
    expect(checkRequest(model, request(x(1, 3))).key).toBe(first.key);
    expect(checkRequest(model, request(x(1, 4))).key).not.toBe(first.key);
    expect(checkRequest(model, request(x(1, 3), note('a'))).key).not.toBe(first.key);
    const reversed = checkRequest(model, request(note('a'), x(1, 3)));
    expect(reversed.key).toBe(checkRequest(model, request(x(1, 3), note('a'))).key);
  });

  it.each<[string, InferRequest, RegExp]>([
    ['a required input is missing', request(note('a')), /expected between 1 and 2 inputs but got 1 inputs.*missing required input\(s\) \['x'\]/],
    ['nothing is given', request(), /expected between 1 and 2 inputs but got 0 inputs.*Got input\(s\) \[\]/],
    ['a name is unknown', request(x(1, 1), x(1, 1, { name: 'z' })), /unexpected inference input 'z' for model 'm'/],
    ['a text runs past the end', request(x(1, 1), { ...note('abc'), bytes: new Uint8Array([9, 0, 0, 0, 1]) }), /^\[request id: r1\] incomplete string data for 'note'/],
    ['texts are too few', request(x(2, 1), { ...note('a'), shape: [2, 1] }), /expected 2 string elements for inference input 'note', got 1/],
    ['batches differ', request(x(2, 1), note('a')), /input 'note' batch size does not match other inputs for 'm'/],
    ['the batch is empty', request(x(0, 1)), /batch-size must be >= 1/],
    ['the batch is too large', request(x(5, 1)), /batch-size must be <= 4/],
    ['the rank is wrong', request(x(1, 1, { shape: [1] })), /Expected \[-1,-1\], got \[1\]/],
    ['an output is unknown', { ...request(x(1, 1)), outputs: [{ name: 'q' }] }, /unexpected inference output 'q'/],
  ])('refuses when %s', (_when, asked, words) => {
    expect(() => checkRequest(model, asked)).toThrow(words);
  }); // biome-ignore format: one row a case

  it('takes a model without a batch dimension as it stands', () => {
    const plain = declaredModel({ name: 'p', input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [-1, 3] }] });
    expect(checkRequest(plain, request(x(7, 3)))).toEqual({ rows: 1, key: 'x:3;' });
  });
});

describe('fillShape', () => {
  it.each([
    [
      [-1, 3],
      [-1, 3],
      [5, 3],
      [5, 3],
    ],
    [
      [3, -1],
      [-1, 3],
      [5, 3],
      [3, 5],
    ],
    [[], [1], [1], []],
    [[1], [], [], [1]],
  ])('%j from %j of %j is %j', (to, from, sizes, filled) => expect(fillShape(to, from, sizes)).toEqual(filled));
});
