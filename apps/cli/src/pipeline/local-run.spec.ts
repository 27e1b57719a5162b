import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipelineSpec } from '@perch/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalSettings, runLocally } from './local-run.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-local-'));
  await writeFile(join(folder, 'detected.json'), '{"boxes": ["a", "b"]}');
  await writeFile(join(folder, 'bad.json'), '{');
});
afterAll(() => rm(folder, { recursive: true }));

const spec = pipelineSpec.parse({
  kind: 'Pipeline',
  name: 'p',
  nodes: {
    detect: { endpoint: 'v/detect', input: '$body.image' },
    embed: { endpoint: 'v/embed', version: 2, map: { over: '$detect.boxes' }, input: { crop: '$item' } },
  },
  output: { vectors: '$embed' },
});
const asked: string[] = [];
const settings = (stubs: Record<string, string>): LocalSettings => ({
  body: Buffer.from('{"image": "i"}'),
  timeoutMs: 5_000,
  stubs,
  modules: {},
  registered: () => Promise.reject(new Error('not asked')),
  serve: async (path, body, contentType) => {
    asked.push(`${path} ${contentType} ${body}`);
    return { is: JSON.parse(body.toString()).crop };
  },
});

it('asks endpoints, takes stubs in place of others, and traces each node', async () => {
  const { value, trace } = await runLocally(spec, settings({ detect: join(folder, 'detected.json') }));
  expect(value).toEqual({ vectors: [{ is: 'a' }, { is: 'b' }] });
  expect(asked).toEqual(['a', 'b'].map((crop) => `/serve/v/embed/2 application/json {"crop":"${crop}"}`));
  expect(trace.map(({ node, outcome, runs }) => [node, outcome, runs])).toEqual([
    ['detect', 'ok', 1],
    ['embed', 'ok', 2],
  ]);
});

it.each([
  ['a node that is not there', { none: 'x' }, 'invalid', '--stub none: the pipeline has no such node'],
  ['no file', { detect: '/none.json' }, 'not_found', 'node detect: --stub /none.json: no such file'],
  ['no JSON', { detect: 'bad.json' }, 'invalid', 'is no JSON'],
])('a stub of %s is refused', async (_what, stubs: Record<string, string>, code, words) => {
  const placed = Object.fromEntries(Object.entries(stubs).map(([node, file]) => [node, file.startsWith('/') ? file : join(folder, file)])); // biome-ignore format: one row reads better
  await expect(runLocally(spec, settings(placed))).rejects.toMatchObject({ code, message: expect.stringContaining(words) }); // biome-ignore format: one row reads better
});
