import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readBody } from '@perch/processing/host';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseFixture } from './fixture.plan.ts';
import { fixtureBody } from './fixture-body.source.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-fixture-'));
  await writeFile(join(folder, 'cat.bin'), Buffer.from([1, 13, 10, 255]));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What `preprocess` would be given for a fixture. */
async function given(fixture: Record<string, unknown>): Promise<unknown> {
  const { body, contentType } = await fixtureBody(
    parseFixture(JSON.stringify({ wanted: 1, ...fixture }), 'a.json'),
    join(folder, 'a.json'),
  );
  return readBody({ body: 'json', defaults: undefined }, body, contentType);
}

it('a body is JSON', async () => {
  expect(await given({ body: { text: ['é', 1] } })).toEqual({ text: ['é', 1] });
  expect(await given({ body: 'text' })).toBe('text');
  expect(await given({ body: { a: 1 }, contentType: 'application/x+json' })).toEqual({ a: 1 });
});

it('files make it multipart, with the members of the body as fields', async () => {
  expect(await given({ body: { text: 'a "b"', limits: [1, { deep: true }] }, files: { image: 'cat.bin' } })).toEqual({
    text: 'a "b"',
    limits: [1, { deep: true }],
    image: Buffer.from([1, 13, 10, 255]),
  });
});

it('another content type takes a text, or the one file', async () => {
  expect(await given({ body: 'a,b', contentType: 'text/csv' })).toEqual(Buffer.from('a,b'));
  expect(await given({ files: { image: 'cat.bin' }, contentType: 'image/png' })).toEqual(Buffer.from([1, 13, 10, 255]));
});

it.each([
  ['a body of text that is none', { body: { a: 1 }, contentType: 'text/csv' }, 'a body of text/csv is a string'],
  [
    'two files for one body',
    { files: { a: 'cat.bin', b: 'cat.bin' }, contentType: 'image/png' },
    'is one file, and files names 2',
  ],
  ['a file that is not there', { files: { a: 'dog.bin' } }, 'there is no file dog.bin'],
])('refuses %s', async (_name, fixture, words) => {
  await expect(given(fixture)).rejects.toThrow(words);
});
