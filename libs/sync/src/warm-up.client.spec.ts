import type { TensorSpec } from '@perch/contracts';
import { type InferenceTransport, type InferRequest, TritonFault } from '@perch/triton/inference';
import { describe, expect, it } from 'vitest';
import { WarmUpClient, zeroInputs } from './warm-up.client.ts';

const inputs: TensorSpec[] = [
  { name: 'ids', datatype: 'INT64', shape: [-1, -1] },
  { name: 'image', datatype: 'FP32', shape: [-1, 3, 2, 2] },
  { name: 'text', datatype: 'BYTES', shape: [-1, 2] },
  { name: 'half', datatype: 'FP16', shape: [3] },
  { name: 'maybe', datatype: 'FP32', shape: [1], optional: true },
];

describe('zeroInputs', () => {
  it('fills what is required, variable dimensions with 1', () => {
    expect(zeroInputs(inputs)?.map(({ name, shape, bytes }) => [name, shape, bytes.length])).toEqual([
      ['ids', [1, 1], 8],
      ['image', [1, 3, 2, 2], 48],
      ['text', [1, 2], 8],
      ['half', [3], 6],
    ]);
  });

  it('does without when it would be huge', () => {
    expect(zeroInputs([{ name: 'x', datatype: 'FP32', shape: [-1, 5_000, 5_000] }])).toBeUndefined();
  });
});

describe('WarmUpClient', () => {
  const server = { http: '127.0.0.1:1', grpc: '127.0.0.1:2' };
  const warm = (infer: (request: InferRequest) => unknown) => {
    const transport = {
      infer: async (_: unknown, request: InferRequest) => infer(request),
    } as unknown as InferenceTransport;
    return new WarmUpClient(transport, server).warm('m', inputs, new AbortController().signal);
  };
  const fail = (kind: ConstructorParameters<typeof TritonFault>[0]) =>
    warm(() => {
      throw new TritonFault(kind, 'infer', 'words');
    });

  it('is content with any answer of the model', async () => {
    expect(await warm(() => ({}))).toEqual({ outcome: 'ok' });
    for (const kind of ['model', 'input', 'unsupported', 'other'] as const)
      expect(await fail(kind)).toEqual({ outcome: 'refused', words: 'words' });
  });

  it('fails when no answer of the model came', async () => {
    for (const kind of ['connection', 'deadline', 'not_ready', 'unknown_model', 'overloaded'] as const)
      await expect(fail(kind)).rejects.toMatchObject({ kind });
  });
});
