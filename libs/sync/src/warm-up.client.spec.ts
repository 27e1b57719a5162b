import { parseGolden, type TensorSpec } from '@perch/contracts';
import { type ForwardRequest, type InferenceTransport, type InferRequest, TritonFault } from '@perch/triton/inference';
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

describe('a golden request', () => {
  const golden = parseGolden(
    JSON.stringify({
      request: { id: 'a', inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] },
      outputs: [{ name: 'y', data: [2] }],
    }),
    'golden/a.json',
  );
  const declared: TensorSpec[] = [{ name: 'y', datatype: 'FP32', shape: [1] }];
  const prove = (forward: (request: ForwardRequest) => unknown) => {
    const transport = { forward: async (_: unknown, request: ForwardRequest) => forward(request) };
    const client = new WarmUpClient(transport as unknown as InferenceTransport, { http: 'h:1', grpc: 'h:2' });
    return client.prove('m', golden, declared, new AbortController().signal);
  };
  const reply = (y: number) =>
    Buffer.from(JSON.stringify({ outputs: [{ name: 'y', datatype: 'FP32', shape: [1], data: [y] }] }));

  it('is sent as it stands, and its answer compared', async () => {
    const sent: unknown[] = [];
    expect(
      await prove(({ model, action, body }) => {
        sent.push(model, action, JSON.parse(Buffer.concat(body).toString()));
        return { body: reply(2) };
      }),
    ).toBeUndefined();
    expect(sent).toEqual(['m', '/infer', golden.request]);
    expect(await prove(() => ({ body: reply(3) }))).toBe('output y differs at [0]: wanted 2, got 3');
  });

  it('finds fault with what is no answer of JSON, and with a refusal', async () => {
    expect(await prove(() => ({ body: Buffer.from('{"outputs":[{"data":[NaN]}]}') }))).toContain('no JSON');
    const refuse = () => {
      throw new TritonFault('input', 'infer', 'unexpected input z');
    };
    expect(await prove(refuse)).toBe('the model refused it: unexpected input z');
  });

  it('tells nothing when it did not get to the model', async () => {
    const lost = () => {
      throw new TritonFault('connection', 'infer', 'cut');
    };
    await expect(prove(lost)).rejects.toMatchObject({ kind: 'connection' });
  });
});
