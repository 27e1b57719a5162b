import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hashIds } from '../../fixtures/tokenizers/corpus.mjs';
import { decodeEvery, hashBytes, layOut, pairTokens } from '../../fixtures/tokenizers/layout.mjs';
import { tokenizerKinds } from '../../fixtures/tokenizers/tokenizers.mjs';
import { buildTokenizer } from './tokenizer.ts';

const folder = new URL('../../fixtures/tokenizers/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, folder));
const expected = JSON.parse(read('expected.json').toString()) as {
  reference: string;
  corpus: string;
  samples: Record<string, number[][]>;
};
const known = JSON.parse(read('known-differences.json').toString()) as { kind: string; text: string; cause: string }[];
const hashes = read('expected.bin');
const { texts, names, pairs, decoded, digest, shown } = layOut();
const everything = { maxTokens: 10_000_000 };

const perKind = texts.length + decoded.length + pairs.length;
const expectedHash = (kind: number, place: number) =>
  hashes.readUIntLE((kind * perKind + place) * hashBytes, hashBytes);
const hash = (words: Iterable<number>) => hashIds(words) & 0xffffff;

describe(`tokenizers beside ${expected.reference}`, () => {
  it('were compared over this corpus', () => {
    expect(digest).toBe(expected.corpus);
    expect(hashes.length).toBe(Object.keys(tokenizerKinds).length * perKind * hashBytes);
    expect(texts.length).toBeGreaterThan(10_000);
  });

  it('differ nowhere but where it is written down, with a cause, and only in hostile texts', () => {
    for (const { text, cause } of known) {
      expect(text).toMatch(/^hostile \d+$/);
      expect(cause.length).toBeGreaterThan(10);
    }
    expect(known.length).toBeLessThanOrEqual((names.length * Object.keys(tokenizerKinds).length) / 1000);
  });

  it.each(Object.keys(tokenizerKinds).map((kind, i) => ({ kind, i })))(
    '$kind: the same ids, texts and pairs',
    async ({ kind, i }) => {
      const tokenizer = await buildTokenizer(JSON.stringify(tokenizerKinds[kind]!()), kind);
      const different: string[] = [];
      for (const [at, text] of texts.entries()) {
        const ids = tokenizer.encode(text, everything);
        if (hash(ids) !== expectedHash(i, at)) different.push(names[at]!);
        else if (at % decodeEvery === 0) {
          const back = hash(Buffer.from(tokenizer.decode(ids)));
          if (back !== expectedHash(i, texts.length + at / decodeEvery)) different.push(`text of ${names[at]}`);
        }
      }
      expect(different).toEqual(known.filter((one) => one.kind === kind).map(({ text }) => text));
      for (const [at, pair] of pairs.entries()) {
        const { ids, types } = tokenizer.encodeBatch([pair], { maxTokens: pairTokens });
        if (hash([...ids, ...types]) !== expectedHash(i, texts.length + decoded.length + at))
          expect.fail(`pair ${at} of ${kind} differs`);
      }
      for (const [at, place] of shown.entries())
        expect([...tokenizer.encode(texts[place]!, everything)]).toEqual(expected.samples[kind]![at]);
    },
    60_000,
  );
});
