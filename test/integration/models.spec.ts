/** The builder of the demo's model: its cache, and what the examples say about it. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { endpointSpec, parseBuiltinOptions, parseWith } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { buildMinilm } from '../support/models.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
let scratch: string;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'perch-models-'));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

async function digest(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** Runs the builder as a user does; answers the folder it printed. */
async function build(variant: number, env: Record<string, string>): Promise<string> {
  const script = join(root, 'scripts/models/minilm.mjs');
  const { stdout } = await run(process.execPath, [script, String(variant)], { env: { ...process.env, ...env } });
  return stdout.trim();
}

describe('building MiniLM', () => {
  it('gives the same bytes each time, and two builders at once one folder', async () => {
    const env = { PERCH_TOOLS_DIR: join(scratch, 'tools with space') };
    const folders = await Promise.all([build(1, env), build(1, env)]);
    expect(new Set(folders)).toEqual(new Set([join(env.PERCH_TOOLS_DIR, 'models', 'minilm-l6-v2.r1.variant1')]));
    expect(await readdir(join(env.PERCH_TOOLS_DIR, 'models'))).toEqual(['minilm-l6-v2.r1.variant1']);
    expect((await readdir(folders[0]!)).sort()).toEqual(['model.onnx', 'tokenizer.json']);
    const again = await buildMinilm({ outDir: join(scratch, 'again'), variant: 1 });
    expect(await digest(join(again, 'model.onnx'))).toBe(await digest(join(folders[0]!, 'model.onnx')));
  });

  it('gives variant 2 other bytes nearly everywhere', async () => {
    const [one, two] = await Promise.all(
      ([1, 2] as const).map(async (variant) => {
        const folder = await buildMinilm({ outDir: join(scratch, `differ-${variant}`), variant });
        return readFile(join(folder, 'model.onnx'));
      }),
    );
    expect(two!.length).toBe(one!.length);
    let words = 0;
    for (let at = 0; at + 4 <= one!.length; at += 4) if (one!.readUInt32LE(at) !== two!.readUInt32LE(at)) words++;
    expect(words / (one!.length / 4)).toBeGreaterThan(0.8);
  });

  it('takes a temporary folder where the cache cannot be written', async () => {
    const blocked = join(scratch, 'file');
    await writeFile(blocked, '');
    const temporary = await mkdtemp(join(scratch, 'tmp-'));
    const folder = await build(1, { PERCH_TOOLS_DIR: blocked, TMPDIR: temporary });
    expect(folder.startsWith(temporary)).toBe(true);
    expect((await readdir(folder)).sort()).toEqual(['model.onnx', 'tokenizer.json']);
  });

  it('clears away what a killed builder left an hour ago, and nothing younger', async () => {
    const models = join(scratch, 'swept', 'models');
    for (const name of ['.building-old', '.building-new']) await mkdir(join(models, name), { recursive: true });
    const longAgo = new Date(Date.now() - 7_200_000);
    await utimes(join(models, '.building-old'), longAgo, longAgo);
    await build(2, { PERCH_TOOLS_DIR: join(scratch, 'swept') });
    expect((await readdir(models)).sort()).toEqual(['.building-new', 'minilm-l6-v2.r1.variant2']);
  });

  it('leaves nothing behind when it fails', async () => {
    const tools = join(scratch, 'failing');
    await expect(build(3, { PERCH_TOOLS_DIR: tools })).rejects.toThrow('minilm: variant 3, wanted 1 or 2');
    expect(await readdir(join(tools, 'models'))).toEqual([]);
  });
});

describe('the MiniLM example', () => {
  const read = (path: string) => readFile(join(root, 'examples/minilm', path), 'utf8');

  it('is an endpoint that can be added', async () => {
    const spec = parseWith(endpointSpec, parse(await read('endpoint.yaml')), 'endpoint.yaml');
    expect(spec.name).toBe('text/minilm');
    expect(parseBuiltinOptions(spec.processing!.builtin!, spec.processing!.options)).toMatchObject({ maxTokens: 256 });
  });

  it('has a request that the built-in reads', async () => {
    const { text } = JSON.parse(await read('request.json'));
    expect(text).toHaveLength(3);
    expect(text.every((one: unknown) => typeof one === 'string')).toBe(true);
  });
});
