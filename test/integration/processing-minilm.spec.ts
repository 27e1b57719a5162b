/** Built-in processing in front of the real MiniLM on onnxruntime: text in, known similarities out. */
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Signature, Tensors } from '@perch/contracts';
import { asInt64, type CallContext, float32 } from '@perch/processing';
import { type LoadedProcessing, loadProcessing } from '@perch/processing/host';
import { beforeAll, describe, expect, it } from 'vitest';
import { type MinilmVariant, minilmFolder } from '../support/models.ts';

// onnxruntime-node's types describe a CommonJS module; the engine is its user, here it stands in for a model server.
const { InferenceSession, Tensor } = createRequire(import.meta.url)('onnxruntime-node');

const ids = (name: string) => ({ name, datatype: 'INT64' as const, shape: [-1, -1] });
const signature: Signature = {
  inputs: ['input_ids', 'attention_mask', 'token_type_ids'].map(ids),
  outputs: [{ name: 'last_hidden_state', datatype: 'FP32', shape: [-1, -1, 384] }],
};
const ctx = {
  requestId: 'r1', endpoint: 'text/minilm', version: 1, signal: new AbortController().signal,
  state: {}, observe: () => {}, count: () => {}, flag: () => {},
} as Partial<CallContext> as CallContext; // biome-ignore format: one row reads better

interface Served {
  processing: LoadedProcessing;
  infer(inputs: Tensors): Promise<Tensors>;
}

async function serve(variant: MinilmVariant, options: Record<string, unknown> = {}): Promise<Served> {
  const folder = await minilmFolder(variant);
  const files = { read: (path: string) => readFile(join(folder, path)), list: () => readdirSync(folder) };
  const processing = await loadProcessing({ builtin: 'text-embedding', options, files, signature, maxBatchSize: 32 });
  const session = await InferenceSession.create(join(folder, 'model.onnx'));
  return {
    processing,
    async infer(inputs) {
      const feeds = Object.entries(inputs).map(([name, tensor]) => [
        name,
        new Tensor('int64', asInt64(tensor), tensor.shape),
      ]);
      const { last_hidden_state: out } = await session.run(Object.fromEntries(feeds));
      return { last_hidden_state: float32(out.data, out.dims) };
    },
  };
}

async function embed({ processing, infer }: Served, text: string | string[]): Promise<Record<string, number[][]>> {
  const body = Buffer.from(JSON.stringify({ text }));
  const { inputs, carry } = await processing.preprocess(body, 'application/json', ctx);
  return JSON.parse(String(processing.postprocess(await infer(inputs), carry, ctx)));
}

const cosine = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

describe.each([1, 2] as const)('MiniLM variant %i', (variant) => {
  let served: Served;
  beforeAll(async () => {
    served = await serve(variant);
  });

  it('gives the similarities that are published for all-MiniLM-L6-v2', async () => {
    const texts = [
      'The cat sits outside',
      'A man is playing guitar',
      'That is a happy person',
      'That is a very happy person',
    ];
    const { embeddings } = await embed(served, texts);
    const [cat, guitar, happy, veryHappy] = embeddings as [number[], number[], number[], number[]];
    expect(cosine(cat, guitar)).toBeCloseTo(0.0363, 2);
    expect(cosine(happy, veryHappy)).toBeCloseTo(0.943, 2);
    expect(cosine(cat, cat)).toBeCloseTo(1, 5);
  });

  it('gives one text the same vector alone and in a padded batch', async () => {
    const { embedding } = await embed(served, 'A cat.');
    const { embeddings } = await embed(served, [
      'A cat.',
      'A much longer sentence that makes the row of the cat end in padding.',
    ]);
    expect(cosine(embedding as unknown as number[], embeddings![0]!)).toBeCloseTo(1, 5);
  });

  it('takes a text far beyond the limit and the empty text', async () => {
    const { embeddings } = await embed(served, ['word '.repeat(5000), '']);
    expect(embeddings!.map((row) => row.length)).toEqual([384, 384]);
    expect(embeddings!.flat().every(Number.isFinite)).toBe(true);
  });
});

describe('two variants of MiniLM', () => {
  it('differ in every vector, and only a little', async () => {
    const [one, two] = await Promise.all([serve(1), serve(2)]);
    const [a, b] = await Promise.all([embed(one, 'Perch on a branch'), embed(two, 'Perch on a branch')]);
    const near = cosine(a['embedding'] as unknown as number[], b['embedding'] as unknown as number[]);
    expect(near).toBeGreaterThan(0.999);
    expect(near).toBeLessThan(0.999999);
  });
});
