import { parseGolden, type TensorSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { goldenAnswer, goldenQuestion } from './golden-message.plan.ts';

const declared: TensorSpec[] = [
  { name: 'half', datatype: 'FP16', shape: [-1] },
  { name: 'whole', datatype: 'INT32', shape: [-1] },
];
const half = { name: 'x', datatype: 'FP16', shape: [2], data: [[1], [-2]] };
const text = { name: 't', datatype: 'BYTES', shape: [1], data: ['a'] };
const golden = (request: object, outputs: object[] = [{ name: 'half', data: [1] }]) =>
  parseGolden(JSON.stringify({ request, outputs }), 'golden/a.json');
const asked = (...[request, outputs]: Parameters<typeof golden>) => {
  const { headers, body } = goldenQuestion(golden(request, outputs), declared);
  return { headers, json: JSON.parse(Buffer.from(body[0]!).toString()), binary: Buffer.concat(body.slice(1)) };
};

describe('a golden request of 16-bit numbers', () => {
  it('has them behind the JSON, in the order of the inputs, and is answered in binary', () => {
    const { headers, json, binary } = asked({
      id: 'a',
      inputs: [text, half, { ...half, name: 'z', datatype: 'BF16' }],
    });
    expect(json).toEqual({
      id: 'a',
      inputs: [
        text,
        { name: 'x', datatype: 'FP16', shape: [2], parameters: { binary_data_size: 4 } },
        { name: 'z', datatype: 'BF16', shape: [2], parameters: { binary_data_size: 4 } },
      ],
      outputs: [{ name: 'half', parameters: { binary_data: true } }],
    });
    expect([...binary]).toEqual([0, 0x3c, 0, 0xc0, 0x80, 0x3f, 0, 0xc0]);
    expect(headers).toMatchObject({ 'inference-header-content-length': String(JSON.stringify(json).length) });
  });
  it('keeps the outputs that it names, and what it says of them', () => {
    const outputs = [{ name: 'whole' }, { name: 'half', parameters: { classification: 1 } }];
    expect(asked({ inputs: [text], outputs }).json.outputs).toEqual([
      { name: 'whole' },
      { name: 'half', parameters: { classification: 1, binary_data: true } },
    ]);
  });
  it.each([[3], [{}], [[null]], [[{ name: 3 }]]])('leaves outputs %j to the model server', (outputs) => {
    expect(asked({ inputs: [text], outputs }).json.outputs).toEqual(outputs);
  });
});

describe('the answer', () => {
  it('is read from JSON and binary alike', () => {
    const outputs = [
      { name: 'half', datatype: 'FP16', shape: [2], parameters: { binary_data_size: 4 } },
      { name: 'whole', datatype: 'INT32', shape: [1], data: [7] },
    ];
    const json = Buffer.from(JSON.stringify({ outputs }));
    const body = Buffer.concat([json, Buffer.from([0, 0x3c, 1, 0x7e])]);
    const read = goldenAnswer({ body, headerLength: json.length });
    expect(read?.map(({ name, data }) => [name, data])).toEqual([
      ['half', [1, Number.NaN]],
      ['whole', [7]],
    ]);
    expect(goldenAnswer({ body, headerLength: undefined })).toBeUndefined();
    expect(goldenAnswer({ body: body.subarray(0, -1), headerLength: json.length })).toBeUndefined();
  });
  it.each(['{', 'null', '{}', '{"outputs": 3}', '{"outputs": [null]}'])('is none when it is %s', (words) => {
    expect(goldenAnswer({ body: Buffer.from(words), headerLength: undefined })).toBeUndefined();
  });
});
