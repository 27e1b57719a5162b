import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHttpRequest } from '../wire/index.ts';
import { readJsonInfer, readRawInfer } from './json-request.ts';
import { ServingFault } from './serving-fault.ts';

const read = (json: unknown, binary = new Uint8Array(0)) =>
  readJsonInfer('m', undefined, Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)), binary);
const faultOf = (work: () => unknown): ServingFault => {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(ServingFault);
    return error as ServingFault;
  }
  throw new Error('nothing was refused');
};
const input = (over: object = {}) => ({ name: 'x', datatype: 'INT8', shape: [2], data: [1, 2], ...over });

describe('JSON requests', () => {
  it('are read with their parameters and outputs', () => {
    const { request, isBinary } = read({
      id: 'a',
      parameters: { timeout: 5, flag: true },
      inputs: [input({ parameters: { note: 'n' } })],
      outputs: [{ name: 'y', parameters: { binary_data: true } }, { name: 'z' }],
    });
    expect(request).toMatchObject({
      modelName: 'm',
      id: 'a',
      parameters: { timeout: 5, flag: true },
      inputs: [{ name: 'x', datatype: 'INT8', shape: [2], parameters: { note: 'n' } }],
    });
    expect([...request.inputs[0]!.bytes]).toEqual([1, 2]);
    expect([isBinary('y'), isBinary('z')]).toEqual([true, false]);
  });

  it('may ask for every output in binary, one excepted', () => {
    const { request, isBinary } = read({
      parameters: { binary_data_output: true },
      inputs: [input()],
      outputs: [{ name: 'y' }, { name: 'z', parameters: { binary_data: false } }],
    });
    expect([isBinary('y'), isBinary('z')]).toEqual([true, false]);
    expect(request.parameters).toEqual({});
  });

  it('of the client half are read by the server half', () => {
    const tensor = fc.record({
      name: fc.string(),
      datatype: fc.constant('UINT8'),
      shape: fc.array(fc.nat(), { maxLength: 3 }),
      bytes: fc.uint8Array({ maxLength: 16 }),
    });
    fc.assert(
      fc.property(fc.array(tensor, { minLength: 1, maxLength: 4 }), (inputs) => {
        const { parts, headerLength } = encodeHttpRequest({ modelName: 'm', inputs });
        const body = Buffer.concat(parts);
        const { request } = readJsonInfer('m', undefined, body.subarray(0, headerLength), body.subarray(headerLength));
        const plain = (tensors: typeof inputs) => tensors.map(({ name, shape, bytes }) => [name, shape, [...bytes]]);
        expect(plain(request.inputs as typeof inputs)).toEqual(plain(inputs));
      }),
    );
  });

  it.each<[string, unknown, string, RegExp]>([
    ['broken', '{', 'internal', /^failed to parse the request JSON buffer/],
    ['null', 'null', 'internal', /non-existing object member 'inputs'/],
    ['a list', [], 'internal', /non-existing object member 'inputs'/],
    ['inputs that are no list', { inputs: {} }, 'internal', /Unable to parse 'inputs': attempt to access JSON non-array as array/],
    ['no name', { inputs: [input({ name: undefined })] }, 'internal', /Unable to parse 'name'/],
    ['no type', { inputs: [input({ datatype: undefined })] }, 'internal', /Unable to parse 'datatype'/],
    ['no shape', { inputs: [input({ shape: undefined })] }, 'internal', /Unable to parse 'shape'/],
    ['half a size', { inputs: [input({ shape: [0.5] })] }, 'internal', /Unable to parse 'shape'/],
    ['an id that is no text', { id: 5, inputs: [input()] }, 'internal', /Unable to parse 'id'/],
    ['parameters that are no object', { parameters: 5, inputs: [] }, 'internal', /Unable to parse 'parameters'/],
    ['a parameter that is a list', { parameters: { a: [] }, inputs: [] }, 'invalid_argument', /parameter 'a' has invalid type/],
    ['shared memory', { inputs: [input({ parameters: { shared_memory_region: 'r' } })] }, 'unsupported', /'x' asks for shared memory/],
    ['classification', { inputs: [input()], outputs: [{ name: 'y', parameters: { classification: 3 } }] }, 'unsupported', /'y' asks for classification/],
    ['data and bytes', { inputs: [input({ parameters: { binary_data_size: 0 } })] }, 'invalid_argument', /more than one field are set/],
    ['a negative size', { inputs: [input({ data: undefined, parameters: { binary_data_size: -4 } })] }, 'invalid_argument', /.*/],
    ['a value out of range', { inputs: [input({ data: [1, 300] })] }, 'internal', /Unable to parse 'data': input 'x': 300 is not a value of INT8/],
  ])('%s are refused', (_what, json, serving, words) => {
    const fault = faultOf(() => read(json));
    expect(fault.message).toMatch(words);
    expect(fault.serving).toBe(serving);
  }); // biome-ignore format: one row a case
});

describe('raw requests', () => {
  const raw = (
    sizeBytes: number,
    inputs: { name: string; datatype: string; shape: number[] }[],
    batches = false,
    element = 4,
  ) => readRawInfer('m', '1', Buffer.alloc(sizeBytes), inputs, batches, element).request.inputs[0]!;
  const x = (...shape: number[]) => [{ name: 'x', datatype: 'FP32', shape }];

  it.each([
    [16, x(4), false, [4]],
    [16, x(-1, 4), true, [1, 4]],
    [32, x(-1, 4), false, [2, 4]],
    [32, x(-1, 2, -1), true, [1, 2, 4]],
  ])('%i bytes for %j are one tensor', (size, inputs, batches, shape) => {
    expect(raw(size, inputs, batches).shape).toEqual(shape);
  });

  it('of a text are its one element', () => {
    const text = raw(3, [{ name: 't', datatype: 'BYTES', shape: [-1, 1] }], true);
    expect(text.shape).toEqual([1, 1]);
    expect([...text.bytes]).toEqual([3, 0, 0, 0, 0, 0, 0]);
  });

  it.each([
    [16, [...x(4), ...x(4)], /Raw request must only have 1 input .* but got 2 inputs/],
    [12, x(4), /Expected 16, got 12/],
    [10, x(-1, 2), /10 bytes are no multiple of 8/],
    [16, x(-1, -1), /more than one variable-sized dimension/],
    [3, [{ name: 't', datatype: 'BYTES', shape: [2] }], /the model must have input shape \[1\]/],
  ])('%i bytes for %j are refused', (size, inputs, words) => {
    expect(faultOf(() => raw(size, inputs)).message).toMatch(words);
  });
});
