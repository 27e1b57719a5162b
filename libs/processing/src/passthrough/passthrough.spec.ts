import type { DataType, Signature, TensorSpec, Tensors } from '@perch/contracts/plain';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from '../call.fake.ts';
import { loadProcessing } from '../loaded-processing.ts';
import { asBytes, asFloat32, asFloat64, asInt32, asInt64, asUint64, float32 } from '../tensor.ts';

const input = (name: string, datatype: DataType, shape: number[], optional?: boolean): TensorSpec => ({
  name,
  datatype,
  shape,
  ...(optional && { optional }),
});
const four = input('x', 'FP32', [-1, 4]);
const load = (inputs: TensorSpec[], maxBatchSize = 8, outputs: Signature['outputs'] = [input('y', 'FP32', [-1, 4])]) =>
  loadProcessing({ builtin: 'passthrough', files: filesOf({}), signature: { inputs, outputs }, maxBatchSize });

async function read(inputs: TensorSpec[], body: unknown, maxBatchSize = 8): Promise<Tensors> {
  const processing = await load(inputs, maxBatchSize);
  const text = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return (await processing.preprocess(text, 'application/json', quietCall)).inputs;
}

describe('passthrough reads', () => {
  it.each<[string, unknown]>([
    ['names and nested lists', { x: [[1, 2, 3, 4]] }],
    ['one example without its batch', { x: [1, 2, 3, 4] }],
    ['the only input without its name', [[1, 2, 3, 4]]],
    ['the protocol form', { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }] }],
    ['the protocol form, short', { inputs: [{ name: 'x', data: [[1, 2, 3, 4]] }] }],
  ])('%s', async (_what, body) => {
    const { x } = await read([four], body);
    expect(x).toMatchObject({ datatype: 'FP32', shape: [1, 4] });
    expect([...asFloat32(x!)]).toEqual([1, 2, 3, 4]);
  });

  it('several inputs of several types', async () => {
    const specs = [
      input('ids', 'INT64', [-1, 2]), input('n', 'INT32', [-1, 1]), input('on', 'BOOL', [-1, 1]), input('words', 'BYTES', [-1, 2]),
      input('wide', 'FP64', [-1, 1]), input('big', 'UINT64', [-1, 1]), input('none', 'FP32', [-1, 1], true),
    ]; // biome-ignore format: a table
    const body = {
      ids: [-5, '9007199254740993'],
      n: 7,
      on: true,
      words: ['é', { b64: '/w==' }],
      wide: 0.1,
      big: '18446744073709551615',
    };
    const inputs = await read(specs, body);
    expect([...asInt64(inputs['ids']!)]).toEqual([-5n, 9007199254740993n]);
    expect([...asInt32(inputs['n']!)]).toEqual([7]);
    expect([...inputs['on']!.bytes]).toEqual([1]);
    expect(asBytes(inputs['words']!).map((value) => [...value])).toEqual([[0xc3, 0xa9], [0xff]]);
    expect([...asFloat64(inputs['wide']!)]).toEqual([0.1]);
    expect([...asUint64(inputs['big']!)]).toEqual([2n ** 64n - 1n]);
    expect(inputs['none']).toBeUndefined();
  });

  it('an input that happens to be called inputs', async () => {
    const { inputs } = await read([input('inputs', 'FP32', [-1, 2])], { inputs: [[1, 2]] });
    expect([...asFloat32(inputs!)]).toEqual([1, 2]);
  });

  it.each<[DataType, number[]]>([
    ['FP32', [0.1, -2.5, 3]], ['FP64', [0.1, -2.5, 3]], ['INT32', [1, -2, 3]], ['INT64', [2 ** 40 + 1, -(2 ** 33) - 1, -1]], ['UINT8', [0, 255, 7]],
  ])('the same %s tensor from a big body as from a small one', async (datatype, values) => {
    const spec = input('x', datatype, [-1, -1]);
    const row = Array.from({ length: 3000 }, (_, i) => values[i % 3]!);
    const small = await read([spec], { x: [row.slice(0, 3)] });
    const big = await read([spec], `${JSON.stringify({ x: [row] })}\n`);
    expect(big['x']!.shape).toEqual([1, 3000]);
    expect(Buffer.from(big['x']!.bytes.subarray(0, small['x']!.bytes.length))).toEqual(Buffer.from(small['x']!.bytes));
  }); // biome-ignore format: a table

  it('a big body into memory of its own', async () => {
    const spec = input('x', 'FP64', [-1]);
    const processing = await load([spec], 0);
    const body = (value: number) => Buffer.from(JSON.stringify({ x: Array(3000).fill(value) }));
    const first = (await processing.preprocess(body(1), undefined, quietCall)).inputs;
    await processing.preprocess(body(2), undefined, quietCall);
    expect(new Set(asFloat64(first['x']!))).toEqual(new Set([1]));
  });
});

describe('passthrough refuses', () => {
  const row = [1, 2, 3, 4];
  const tensor = (more: object) => ({ inputs: [{ name: 'x', data: row, ...more }] });
  it.each<[string, TensorSpec[], unknown, string]>([
    ['an unknown name', [four], { z: row }, 'unknown input "z": the model has "x"'],
    [
      'a missing input',
      [four, input('n', 'INT32', [-1, 1])],
      { x: [row] },
      'missing input "n": the model has "x", "n"',
    ],
    [
      'an input twice',
      [four],
      {
        inputs: [
          { name: 'x', data: row },
          { name: 'x', data: row },
        ],
      },
      'input "x" is given twice',
    ],
    ['another datatype', [four], tensor({ datatype: 'INT64' }), 'input "x": datatype INT64, wanted FP32'],
    ['a wrong shape', [four], { x: [[1, 2, 3]] }, 'input "x": shape [1, 3], wanted [-1, 4]'],
    [
      'a written shape that does not hold the data',
      [four],
      tensor({ shape: [2, 4] }),
      'input "x": shape [2, 4] wants 8 values, got 4',
    ],
    [
      'a written shape of another kind',
      [four],
      tensor({ shape: '1,4' }),
      'input "x": shape is a string, wanted a list of whole numbers',
    ],
    [
      'a written shape below zero',
      [four],
      tensor({ shape: [-1, -4] }),
      'input "x": shape is a list, wanted a list of whole numbers',
    ],
    [
      'a name of another type',
      [four],
      { inputs: [{ name: 1, data: row }] },
      'inputs[0].name is a number, wanted a string',
    ],
    [
      'ragged rows',
      [four],
      { x: [row, [1, 2]] },
      'input "x": ragged lists: at [1] wanted 4 elements as in its first neighbour, got 2',
    ],
    ['a value among rows', [four], { x: [row, 3] }, 'input "x": ragged lists: at [1] wanted a list, got a value'],
    ['a row among values', [four], { x: [1, [2], 3, 4] }, 'input "x": ragged lists: at [1] wanted a value, got a list'],
    [
      'a deep row among values',
      [four],
      { x: [[1, 2, 3, [4]]] },
      'input "x": ragged lists: at [0][3] wanted a value, got a list',
    ],
    [
      'lists deeper than any tensor',
      [four],
      `{"x":${'['.repeat(20)}${']'.repeat(20)}}`,
      'input "x": lists nested deeper than 16',
    ],
    [
      'text for a number',
      [four],
      { x: [1, 2, 'three', 4] },
      'input "x": value 2 is a string, wanted a number for FP32',
    ],
    ['null for a number', [four], { x: [1, 2, null, 4] }, 'input "x": value 2 is null, wanted a number for FP32'],
    [
      'a number beyond float32',
      [four],
      { x: [1, 2, 3, 1e39] },
      'input "x": value 3 is 1e+39, wanted within the range of FP32',
    ],
    [
      'a number beyond float64',
      [input('x', 'FP64', [1])],
      '{"x":[1e999]}',
      'input "x": value 0 is Infinity, wanted within the range of FP64',
    ],
    [
      'a fraction for an integer',
      [input('x', 'INT32', [-1, 1])],
      { x: 1.5 },
      'value 0 is 1.5, wanted a whole number from -2147483648 to 2147483647 for INT32',
    ],
    [
      'an integer out of range',
      [input('x', 'UINT8', [-1, 1])],
      { x: 256 },
      'value 0 is 256, wanted a whole number from 0 to 255 for UINT8',
    ],
    [
      'an integer that a double does not hold',
      [input('x', 'INT64', [-1, 1])],
      '{"x":9007199254740993}',
      'value 0 is 9007199254740992, wanted a whole number for INT64 (beyond 2^53 written as a string)',
    ],
    [
      'an integer text out of range',
      [input('x', 'INT64', [-1, 1])],
      { x: '9223372036854775808' },
      'value 0 is 9223372036854775808, wanted a whole number from -9223372036854775808',
    ],
    [
      'below zero for unsigned',
      [input('x', 'UINT64', [-1, 1])],
      { x: -1 },
      'value 0 is -1, wanted a whole number for UINT64',
    ],
    [
      'a number for a truth',
      [input('x', 'BOOL', [-1, 1])],
      { x: 2 },
      'value 0 is 2, wanted true, false, 1 or 0 for BOOL',
    ],
    ['a truth for a number', [four], { x: [true, 1, 1, 1] }, 'value 0 is a boolean, wanted a number for FP32'],
    [
      'a number for a text',
      [input('x', 'BYTES', [-1, 1])],
      { x: 2 },
      'value 0 is a number, wanted a string or {"b64": "…"} for BYTES',
    ],
    [
      'bad base64',
      [input('x', 'BYTES', [-1, 1])],
      { x: { b64: '*' } },
      'value 0 is an object, wanted a string or {"b64": "…"}',
    ],
    [
      'half floats beyond their range',
      [input('x', 'FP16', [-1, 1])],
      { x: 65_520 },
      'input "x": value 0 is 65520, wanted within the range of FP16',
    ],
    ['more than a full batch', [four], { x: Array(9).fill(row) }, 'input "x": batch of 9, wanted 1 to 8'],
    [
      'batches that differ',
      [four, input('n', 'INT32', [-1, 1])],
      { x: [row, row], n: [[1]] },
      'input "n": batch of 1, but input "x" has 2',
    ],
    ['an empty list', [four], { x: [] }, 'input "x": shape [0], wanted [-1, 4]'],
    ['null', [four], 'null', 'the body is null, wanted an object with the inputs "x"'],
    [
      'a bare list for two inputs',
      [four, four],
      [row],
      'the body is a list, wanted an object with the inputs "x", "x"',
    ],
    ['an empty body', [four], Buffer.alloc(0), 'the body is empty, wanted JSON'],
    ['half a body', [four], '{"x": [1, 2', 'the body is not valid JSON'],
    ['a body that is no UTF-8', [four], Buffer.of(0x22, 0xff, 0x22), 'the body is not valid UTF-8'],
  ])('%s', async (_what, specs, body, message) => {
    await expect(read(specs, body)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(message),
    });
  });

  it('a big body with the same words as a small one', async () => {
    const spec = input('x', 'INT32', [-1, -1]);
    const rows = [Array(3000).fill(1), Array(2999).fill(1)];
    await expect(read([spec], { x: rows })).rejects.toMatchObject({
      message: expect.stringContaining('ragged lists: at [1] wanted 3000'),
    });
    await expect(read([spec], { x: [[...rows[0]!, 0.5]] })).rejects.toMatchObject({
      message: expect.stringContaining('value 3000 is 0.5'),
    });
    await expect(read([four], { x: rows[0] })).rejects.toMatchObject({
      message: 'input "x": batch of 750, wanted 1 to 8',
    });
  });

  it('bodies that are not JSON by their type', async () => {
    const processing = await load([four]);
    expect(() => processing.preprocess(Buffer.from('x'), 'image/png', quietCall)).toThrow(
      expect.objectContaining({ code: 'unsupported_media_type' }),
    );
  });
});

describe('passthrough answers', () => {
  it("the request's own form through a whole call", async () => {
    const processing = await load([four]);
    const { carry } = await processing.preprocess(
      Buffer.from('{"inputs":[{"name":"x","data":[1,2,3,4]}]}'),
      undefined,
      quietCall,
    );
    expect(JSON.parse(String(processing.postprocess({ y: float32([1], [1, 1]) }, carry, quietCall)))).toHaveProperty(
      'outputs',
    );
  });
});
