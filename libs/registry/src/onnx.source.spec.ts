import fc from 'fast-check';
import onnxProto from 'onnx-proto';
import { describe, expect, it } from 'vitest';
import { readOnnx } from './onnx.source.ts';

const { onnx } = onnxProto;
type Dims = (number | string)[];

const value = (name: string, elemType: number, dims: Dims | undefined) => ({
  name,
  type: {
    tensorType: {
      elemType,
      shape: dims && { dim: dims.map((dim) => (typeof dim === 'string' ? { dimParam: dim } : { dimValue: dim })) },
    },
  },
});
const weight = (name: string, bytes: number) => ({
  name,
  dataType: 1,
  dims: [bytes / 4],
  rawData: new Uint8Array(bytes),
});
const file = (graph: object): Buffer =>
  Buffer.from(onnx.ModelProto.encode(onnx.ModelProto.create({ irVersion: 8, producerName: 'spec', graph })).finish());

async function signatureOf(bytes: Buffer) {
  let read = 0;
  const range = async (first: number, last: number) => {
    read += last - first + 1;
    return bytes.subarray(first, last + 1);
  };
  const { fault, ...sight } = await readOnnx(range, bytes.length, new AbortController().signal);
  if (fault) throw fault;
  return { ...sight, read };
}

describe('readOnnx', () => {
  it('reads names, types and shapes; a free dimension is -1', async () => {
    const bytes = file({
      name: 'g',
      input: [value('input_ids', 7, ['batch', 'length']), value('mask', 6, ['batch', 16])],
      output: [value('last_hidden_state', 1, ['batch', -1, 384]), value('score', 1, [])],
    });
    expect((await signatureOf(bytes)).signature).toEqual({
      inputs: [
        { name: 'input_ids', datatype: 'INT64', shape: [-1, -1] },
        { name: 'mask', datatype: 'INT32', shape: [-1, 16] },
      ],
      outputs: [
        { name: 'last_hidden_state', datatype: 'FP32', shape: [-1, -1, 384] },
        { name: 'score', datatype: 'FP32', shape: [] },
      ],
    });
  });

  it('steps over weights instead of reading them, and does not take them for inputs', async () => {
    const bytes = file({
      initializer: [weight('w1', 4_000_000), weight('w2', 4_000_000)],
      input: [value('w1', 1, [1_000_000]), value('x', 1, [4]), value('w2', 1, [1_000_000])],
      output: [value('y', 1, [4])],
    });
    const { signature, read } = await signatureOf(bytes);
    expect(signature!.inputs).toEqual([{ name: 'x', datatype: 'FP32', shape: [4] }]);
    expect(read).toBeLessThan(200_000);
  });

  it('reads the versions of format and operators, those of the standard ones alone', async () => {
    const bytes = (opsetImport: object[]) =>
      Buffer.from(
        onnx.ModelProto.encode(
          onnx.ModelProto.create({
            irVersion: 9,
            opsetImport,
            graph: { initializer: [weight('w', 400_000)], output: [value('y', 1, [4])] },
          }),
        ).finish(),
      );
    const standard = { domain: '', version: 17 };
    const microsoft = { domain: 'com.microsoft', version: 1 };
    expect(await signatureOf(bytes([microsoft, standard]))).toMatchObject({ ir: 9, opset: 17 });
    expect(await signatureOf(bytes([{ domain: 'ai.onnx', version: 21 }]))).toMatchObject({ ir: 9, opset: 21 });
    expect(await signatureOf(bytes([microsoft]))).toMatchObject({ ir: 9, opset: null });
  });

  it('knows every type Triton has a name for', async () => {
    const names = [
      'FP32',
      'UINT8',
      'INT8',
      'UINT16',
      'INT16',
      'INT32',
      'INT64',
      'BYTES',
      'BOOL',
      'FP16',
      'FP64',
      'UINT32',
      'UINT64',
    ];
    const output = names.map((name, at) => value(name, at + 1, [1]));
    const { signature } = await signatureOf(file({ output: [...output, value('BF16', 16, [1])] }));
    expect(signature!.outputs.map((spec) => spec.datatype)).toEqual([...names, 'BF16']);
  });

  it.each([
    ['no file', Buffer.alloc(0)],
    ['text', Buffer.from('this is not an ONNX file at all, is it?')],
    ['a graph without outputs', file({ input: [value('x', 1, [1])] })],
    ['an output of unknown rank', file({ output: [value('y', 1, undefined)] })],
    ['an output of an unknown type', file({ output: [value('y', 99, [1])] })],
    ['an output that is a sequence', file({ output: [{ name: 'y', type: { sequenceType: {} } }] })],
  ])('throws on %s', async (_case, bytes) => {
    await expect(signatureOf(bytes)).rejects.toThrow();
  });

  it('ends on any bytes, cut or changed', async () => {
    const whole = file({
      initializer: [weight('w', 400)],
      input: [value('x', 1, ['n'])],
      output: [value('y', 1, [4])],
    });
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(255), fc.boolean(), async (at, byte, cut) => {
        const bytes = cut ? whole.subarray(0, at) : Buffer.from(whole);
        if (!cut) bytes[at] = byte;
        await signatureOf(bytes).catch((error) => expect(error).toBeInstanceOf(Error));
      }),
      { numRuns: 300 },
    );
  });

  it('gives up when its time is over', async () => {
    const bytes = file({ output: [value('y', 1, [4])] });
    const read = async () => bytes;
    await expect(readOnnx(read, bytes.length, AbortSignal.abort())).rejects.toThrow();
  });
});
