import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tokenizerKinds } from '../../fixtures/tokenizers/tokenizers.mjs';
import { filesOf } from '../call.fake.ts';
import { readFrame } from './frame.ts';
import { splitText } from './split.ts';
import { buildTokenizer, readTokenizer } from './tokenizer.ts';
import { planTruncation } from './truncation.plan.ts';

const build = (kind: string, change: object = {}) =>
  buildTokenizer(JSON.stringify({ ...tokenizerKinds[kind]!(), ...change }), 'tokenizer.json');

describe('streamed text', () => {
  it.each(['gpt2', 'llama2', 't5', 'minilm'])(
    '%s: is the same as decoded whole, never half a character',
    async (kind) => {
      const tokenizer = await build(kind);
      const given = fc.oneof(fc.string({ unit: 'grapheme' }), fc.lorem(), fc.constant('héllo 日本 👩‍👩‍👧 ok'));
      fc.assert(
        fc.property(given, (text) => {
          const ids = [...tokenizer.encode(text, { maxTokens: 10_000 })];
          const stream = tokenizer.decodeStream();
          const pieces = ids.map((id) => stream.push(id));
          for (const piece of pieces) if (!text.includes('\ufffd')) expect(piece).not.toContain('\ufffd');
          expect(pieces.join('') + stream.finish()).toBe(tokenizer.decode(ids));
        }),
        { numRuns: 150 },
      );
    },
  );

  it('lets bytes go that never become a character', async () => {
    const tokenizer = await build('gpt2');
    const stray = tokenizer.tokenId('ð')!;
    const stream = tokenizer.decodeStream();
    const text = [...Array(50).fill(stray)].map((id) => stream.push(id)).join('') + stream.finish();
    expect(text).toBe('\ufffd'.repeat(50));
  });

  it('keeps special tokens where it should', async () => {
    const tokenizer = await build('gpt2');
    const ids = [...tokenizer.encode('a'), tokenizer.tokenId('<|endoftext|>')!, 999_999];
    expect(tokenizer.decode(ids)).toBe('a');
    expect(tokenizer.decode(ids, { skipSpecial: false })).toBe('a<|endoftext|>');
    expect(tokenizer.decode([])).toBe('');
    expect(tokenizer.tokenId('no such token')).toBeUndefined();
    expect(tokenizer.vocabularySize).toBe(50_257);
  });
});

describe('sides', () => {
  it('pads and cuts on the left where the file says so, unless the caller knows better', async () => {
    const json = { padding: { direction: 'Left', pad_id: 7 }, truncation: { direction: 'Left' } };
    const tokenizer = await build('gpt2', json);
    const whole = [...tokenizer.encode('one two three')];
    const { ids, mask } = tokenizer.encodeBatch(['one two three', 'one two three four five'], { maxTokens: 4 });
    expect([...ids.slice(0, 4)]).toEqual([7, ...whole]);
    expect([...mask]).toEqual([0, 1, 1, 1, 1, 1, 1, 1]);
    expect(tokenizer.decode(ids.slice(4))).toBe(' two three four five');
    const right = tokenizer.encodeBatch(['one', 'one two'], { paddingSide: 'right', truncationSide: 'right' });
    expect([...right.mask]).toEqual([1, 0, 1, 1]);
  });

  it('leaves out special tokens where it should', async () => {
    const tokenizer = await build('minilm');
    expect([...tokenizer.encode('hello', { specialTokens: false })]).toEqual([7592]);
    expect([...tokenizer.encode(['hello', 'hello'], { specialTokens: false })]).toEqual([7592, 7592]);
  });
});

describe('a pair that is too long', () => {
  it('keeps as many tokens as there is room for, and all of the shorter text while the longer has more', () => {
    const length = fc.integer({ min: 0, max: 60 });
    fc.assert(
      fc.property(length, length, length, (first, second, room) => {
        const [one, two] = planTruncation([first, second], room, 'longest-first')!;
        expect(one + two).toBe(Math.min(room, first + second));
        expect(one).toBeLessThanOrEqual(first);
        expect(two).toBeLessThanOrEqual(second);
        if (one < first && two < second) expect(Math.abs(one - two)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it.each([
    [[5, 5], 6, 'first', [1, 5]],
    [[5, 5], 5, 'first', undefined],
    [[5, 5], 6, 'second', [5, 1]],
    [[5, 5], 20, 'second', [5, 5]],
  ] as const)('%j in %i by the %s', (lengths, room, truncation, wanted) =>
    expect(planTruncation(lengths, room, truncation)).toEqual(wanted),
  );

  it('is refused where the text that may be cut is too short for it', async () => {
    const tokenizer = await build('minilm');
    expect(() => tokenizer.encode(['a', 'b '.repeat(50)], { maxTokens: 10, truncation: 'first' })).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining('by cutting its first text alone') }),
    );
  });
});

describe('splitting', () => {
  it.each([
    ['removed', ['the', 'final', 'countdown']],
    ['isolated', ['the', '-', 'final', '-', '-', 'countdown']],
    ['mergedwithprevious', ['the-', 'final-', '-', 'countdown']],
    ['mergedwithnext', ['the', '-final', '-', '-countdown']],
    ['contiguous', ['the', '-', 'final', '--', 'countdown']],
  ] as const)('%s', (behavior, wanted) => expect(splitText('the-final--countdown', /-/g, behavior)).toEqual(wanted));
});

describe('a tokenizer.json that is not supported', () => {
  it.each([
    ['a model of words', { model: { type: 'WordLevel', vocab: {}, unk_token: 'x' } }, /model is of type WordLevel, supported are WordPiece, BPE, Unigram/],
    ['a normalizer', { normalizer: { type: 'Nmt' } }, /normalizer/i],
    ['a splitter', { pre_tokenizer: { type: 'UnicodeScripts' } }, /pre_tokenizer UnicodeScripts is not supported; there are BertPreTokenizer/],
    ['a post-processor', { post_processor: { type: 'Other' } }, /post_processor Other is not supported; wanted TemplateProcessing/],
    ['a damaged table', { normalizer: { type: 'Precompiled', precompiled_charsmap: 'AAAA' } }, /precompiled_charsmap is damaged/],
  ])('is refused for %s, by name', async (_what, change, words) => {
    await expect(build('minilm', change)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(words),
    });
  }); // biome-ignore format: a table

  it('is a pair where the tokenizer has no template for one', async () => {
    const tokenizer = await build('gpt2', {
      post_processor: { type: 'TemplateProcessing', single: [{ Sequence: { id: 'A', type_id: 0 } }], pair: [] },
    });
    expect(() => tokenizer.encodeBatch([['a', 'b']])).toThrow('no template for pairs');
    expect(() => readFrame({ type: 'TemplateProcessing', single: [] })).toThrow('leaves the text out');
  });
});

describe('what the reference made of texts', () => {
  const read = (texts: object[]) =>
    readTokenizer(
      filesOf({
        'sub/tokenizer.json': JSON.stringify(tokenizerKinds['minilm']!()),
        'sub/tokenizer.parity.json': JSON.stringify({ texts }),
      }),
      'sub/tokenizer.json',
    );

  it('is checked wherever the tokenizer is loaded', async () => {
    const texts = [{ text: 'hello', ids: [101, 7592, 102] }, { text: ['hello', 'hello'], ids: [101, 7592, 102, 7592, 102], types: [0, 0, 0, 1, 1] }]; // biome-ignore format: one row
    await expect(read(texts)).resolves.toBeDefined();
    await expect(read([...texts, { text: 'good', ids: [101, 102] }])).rejects.toMatchObject({
      code: 'invalid',
      message:
        'sub/tokenizer.parity.json: texts[2] ("good") differs at token 1: the reference has 102, this server 2204',
    });
    await expect(
      read([{ text: ['a', 'a'], ids: [101, 1037, 102, 1037, 102], types: [0, 0, 0, 0, 0] }]),
    ).rejects.toThrow('differs at type of token 3: the reference has 0, this server 1');
  });
});
