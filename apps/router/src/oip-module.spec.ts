import type { TensorSpec } from '@perch/contracts';
import { tensor } from '@perch/processing';
import { describe, expect, it } from 'vitest';
import { bodyOfTensors, readInfer, replyOfValue } from './oip-module.ts';

const spec = (name: string, datatype: TensorSpec['datatype'], shape: number[], optional?: boolean): TensorSpec => ({
  name, datatype, shape, ...(optional ? { optional } : {}),
}); // biome-ignore format: one row reads better
const named = (name: string, made: ReturnType<typeof tensor>) => ({ ...made, name, shape: [...made.shape] });
const image = Buffer.of(0xff, 0xd8, 0xff);

const asking = (json: object, binary = Buffer.alloc(0), headers: Record<string, string> = {}) => {
  const head = Buffer.from(JSON.stringify(json));
  const length = { 'inference-header-content-length': String(head.length) };
  return {
    head: { headers: { ...(binary.length > 0 ? length : {}), ...headers } },
    body: [head, binary],
  } as unknown as Parameters<typeof readInfer>[0];
};

describe('bodyOfTensors', () => {
  const declared = [spec('image', 'BYTES', [1]), spec('text', 'BYTES', [-1]), spec('n', 'INT64', [1], true)];
  it('makes one object of them, texts as texts and other bytes as base64', () => {
    const body = bodyOfTensors(
      [
        named('image', tensor('BYTES', [image], [1])),
        named('text', tensor('BYTES', ['a cat', 'é'], [2])),
        named('n', tensor('INT64', [2n ** 60n], [1])),
      ],
      declared,
    );
    expect(JSON.parse(body.toString())).toEqual({
      image: { b64: image.toString('base64') },
      text: ['a cat', 'é'],
      n: String(2n ** 60n),
    });
  });

  it.each([
    ['unknown', [named('x', tensor('FP32', [1], [1]))], 'there is no input "x", wanted image, text, n'],
    ['of another type', [named('image', tensor('FP32', [1], [1]))], 'input "image" is FP32, wanted BYTES'],
    ['of another shape', [named('image', tensor('BYTES', ['a', 'b'], [2]))], 'input "image" has shape [2], wanted [1]'],
    ['missing', [named('image', tensor('BYTES', ['a'], [1]))], 'input "text" is missing'],
  ])('refuses an input that is %s', (_name, inputs, message) => {
    expect(() => bodyOfTensors(inputs, declared)).toThrow(message);
  });
});

describe('readInfer', () => {
  it('reads binary and JSON tensors', () => {
    const made = tensor('BYTES', [image], [1]);
    const { request } = readInfer(
      asking(
        {
          inputs: [
            { name: 'image', datatype: 'BYTES', shape: [1], parameters: { binary_data_size: made.bytes.length } },
            { name: 'text', datatype: 'BYTES', shape: [1], data: ['a cat'] },
          ],
        },
        Buffer.from(made.bytes),
      ),
      'e',
    );
    expect(request.inputs.map(({ name, shape }) => [name, shape])).toEqual([['image', [1]], ['text', [1]]]); // biome-ignore format: a row
    expect(Buffer.from(request.inputs[0]!.bytes)).toEqual(Buffer.from(made.bytes));
  });

  it.each([
    ['no JSON', { body: [Buffer.from('{')], head: { headers: {} } } as never, 'failed to parse'],
    ['a length beyond the body', asking({}, Buffer.alloc(0), { 'inference-header-content-length': '99' }), 'no length within the body'],
    ['a compressed body', asking({ inputs: [] }, Buffer.alloc(0), { 'content-encoding': 'gzip' }), 'without content-encoding'],
  ])('refuses %s', (_name, request, message) => {
    expect(() => readInfer(request, 'e')).toThrow(message);
    expect(() => readInfer(request, 'e')).toThrow(expect.objectContaining({ code: 'invalid' }));
  }); // biome-ignore format: a table
});

describe('replyOfValue', () => {
  const names = { endpoint: 'vision/e', version: 3 };
  const read = (value: unknown, declared: TensorSpec[], json: object = {}) => {
    const reply = replyOfValue(value, declared, readInfer(asking({ id: 'r', inputs: [], ...json }), 'e'), names);
    const head = /inference-header-content-length: (\d+)/.exec(reply.headerLines)?.[1];
    const bytes = Buffer.concat(reply.body as Uint8Array[]);
    return { json: JSON.parse(bytes.toString('utf8', 0, head ? Number(head) : bytes.length)), rest: head ? bytes.subarray(Number(head)) : undefined };
  }; // biome-ignore format: one row reads better

  it('gives each declared output its value, in the shape that is declared', () => {
    const { json } = read({ label: 'cat', scores: [0.5, 0.25], more: 1 }, [spec('label', 'BYTES', [1]), spec('scores', 'FP32', [1, -1])]);
    expect(json).toEqual({
      id: 'r', model_name: 'vision/e', model_version: '3',
      outputs: [
        { name: 'label', datatype: 'BYTES', shape: [1], data: ['cat'] },
        { name: 'scores', datatype: 'FP32', shape: [1, 2], data: [0.5, 0.25] },
      ],
    });
  }); // biome-ignore format: one row reads better

  it('answers the only output with the whole value, as JSON text where it is no text', () => {
    const { json } = read({ boxes: [1, 2] }, [spec('answer', 'BYTES', [1])]);
    expect(json.outputs[0].data).toEqual(['{"boxes":[1,2]}']);
  });

  it('answers in binary, and only what was asked for', () => {
    const outputs = [{ name: 'b', parameters: { binary_data: true } }];
    const { json, rest } = read({ a: [1], b: [2] }, [spec('a', 'INT32', [1]), spec('b', 'INT32', [1])], { outputs });
    expect(json.outputs).toEqual([{ name: 'b', datatype: 'INT32', shape: [1], parameters: { binary_data_size: 4 } }]);
    expect(rest).toEqual(Buffer.of(2, 0, 0, 0));
  });

  it.each([
    [{ a: 1 }, [spec('a', 'INT32', [1]), spec('b', 'INT32', [1])], 'has no output "b", which it declares'],
    [{ a: [1, 2] }, [spec('a', 'INT32', [1])], 'output "a": shape [2], wanted [1]'],
    [{ a: 1.5 }, [spec('a', 'INT32', [1])], 'output "a": INT32 tensor: value 0 is 1.5, wanted a whole number'],
  ])('says what is wrong with the module (%#)', (value, declared, message) => {
    expect(() => read(value, declared)).toThrow(message);
    expect(() => read(value, declared)).toThrow(expect.objectContaining({ code: 'module' }));
  });

  it('refuses an output that nobody declares', () => {
    expect(() => read({ a: 1 }, [spec('a', 'INT32', [1])], { outputs: [{ name: 'z' }] })).toThrow(
      'there is no output "z"',
    );
  });
});
