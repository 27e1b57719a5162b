import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tasks } from '@perch/contracts';
import type { AnyModule } from '@perch/processing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleModule } from '../../apps/cli/src/processing/bundle.ts';
import { readFacts } from '../../apps/cli/src/processing/facts.source.ts';
import { runFixtures } from '../../apps/cli/src/processing/fixture-set.ts';
import { findModule } from '../../apps/cli/src/processing/module-folder.source.ts';
import { prepareModule } from '../../apps/cli/src/processing/prepared-module.ts';
import { installedSdk } from '../../apps/cli/src/processing/sdk.source.ts';
import { skeletonFiles } from '../../apps/cli/src/processing/skeleton.plan.ts';
import { taskFaults } from '../../apps/cli/src/processing/task-check.plan.ts';
import { typeFaults } from '../../apps/cli/src/processing/type-check.ts';
import { verdictsFault } from '../../apps/cli/src/processing/verdict.plan.ts';

const head = `import { defineProcessing, float32 } from '@perch/processing';\n`;
const body = `export default defineProcessing({
  task: 'numbers',
  preprocess(body: { x: number[] }) {
    return { inputs: { x: float32(body.x, [1, body.x.length]) } };
  },
});
`;
const sdk = installedSdk();
let folder: string;
let made = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-bundles-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A folder with these files; `module.ts` alone when it is a text. */
async function place(files: string | Record<string, string>, given?: string): Promise<string> {
  made += 1;
  const name = given ?? `m${made}`;
  for (const [path, text] of Object.entries(typeof files === 'string' ? { 'module.ts': files } : files)) {
    await mkdir(dirname(join(folder, name, path)), { recursive: true });
    await writeFile(join(folder, name, path), text);
  }
  return join(folder, name);
}
const bundle = async (files: string | Record<string, string>) => bundleModule(await findModule(await place(files)));
const factsOf = async (text: string, timeoutMs?: number) => {
  const { bytes } = await bundle(text);
  return readFacts({ bundle: bytes, sdk, timeoutMs });
};
const refusal = (words: string) => ({ code: 'invalid', message: expect.stringContaining(words) });

describe('a module on its way to the registry', () => {
  it('is one file that has no path of this computer in it, the same wherever its sources lie', async () => {
    const files = {
      'module.ts': `${head}import { limit } from './lib/limit.ts';\nimport words from './words.json';\nimport { pad } from 'tiny-pad';\nexport const all = [limit, words, pad];\n${body}`,
      'lib/limit.ts': 'export const limit = 3;\n',
      'words.json': '["a"]',
      'package.json': '{"dependencies": {"tiny-pad": "1.0.0"}}',
      'node_modules/tiny-pad/package.json': '{"name": "tiny-pad", "version": "1.0.0", "main": "index.js"}',
      'node_modules/tiny-pad/index.js': `const { inspect } = require('util');\nexports.pad = (x) => inspect(x).padStart(3);\n`,
      'labels.txt': 'a\n',
      'files-are-data.bin': 'x',
    };
    const one = await place(files, 'one');
    const found = await findModule(one);
    expect(found.files.map(({ path }) => path)).toEqual(['files-are-data.bin', 'labels.txt', 'words.json']);
    const first = await bundleModule(found);
    expect(first.bytes.toString()).not.toContain(folder);
    expect(first.sources).toEqual(['lib/limit.ts', 'module.ts', 'node_modules/tiny-pad/index.js', 'words.json']);
    await cp(one, join(folder, 'deep/er/two'), { recursive: true });
    await symlink(join(folder, 'deep/er/two'), join(folder, 'linked'));
    for (const again of ['deep/er/two', 'linked'])
      expect((await bundleModule(await findModule(join(folder, again)))).bytes.equals(first.bytes)).toBe(true);
    expect((await readFacts({ bundle: first.bytes, sdk })).facts).toMatchObject({ task: 'numbers' });
  });

  it('is type-checked against the SDK without packages of its own, each error with its place', async () => {
    const bad = `${head}const names: string[] = [1];\n${body.replace('body.x, [1', `'text', [1`)}export const n = names;\n`;
    const { entry, root } = await findModule(await place({ 'module.ts': bad, 'unused.ts': 'const x: number = "";' }));
    const faults = await typeFaults(entry, root, sdk);
    expect(faults.map(({ file, line, column, code }) => ({ file, line, column, code }))).toEqual([
      { file: 'module.ts', line: 2, column: 26, code: 'const names: string[] = [1];' },
      {
        file: 'module.ts',
        line: 6,
        column: 35,
        code: `    return { inputs: { x: float32('text', [1, body.x.length]) } };`,
      },
    ]);
    expect(faults[0]!.message).toMatch(/^Type 'number' is not assignable to type 'string'\. \(TS2322\)$/);
  });

  it.each([
    ['a forbidden part of Node', `import { readFileSync } from 'node:fs';\n${head}${body}export const f = readFileSync;`, 'module.ts:1:30: node:fs is not for modules'],
    ['the same without node:', `${head}import fs from 'fs';\n${body}export const f = fs;`, 'module.ts:2:16: fs is not for modules'],
    ['one behind import()', `${head}${body}export const f = () => import('node:net');`, 'node:net is not for modules'],
    ['a computed import()', `${head}${body}const n = 'node:fs';\nexport const f = () => import(n);`, 'module.ts:9:24: import() wants a name in quotes'],
    ['a package that is not listed', `${head}import _ from 'lodash';\n${body}export const f = _;`, 'module.ts:2:15: package lodash is not listed'],
    ['native code', `${head}import sharp from 'sharp';\n${body}export const f = sharp;`, 'sharp is native code, which cannot be bundled; use decodeImage'],
    ['a file that is not there', `${head}import x from './none.ts';\n${body}export const f = x;`, 'none.ts'],
    ['bad syntax', `${head}export default defineProcessing({ preprocess( });`, 'module.ts:2:'],
    ['no default export', `${head}export const module = defineProcessing({ preprocess: () => ({ inputs: {} }) });`, 'module.ts has no default export'],
  ])('is refused with %s', async (_why, text, words) => {
    await expect(bundle(text)).rejects.toMatchObject(refusal(words));
  }); // biome-ignore format: a table

  it('is refused with a package that reaches for files', async () => {
    const files = {
      'module.ts': `${head}import { read } from 'reader';\n${body}export const f = read;`,
      'package.json': '{"dependencies": {"reader": "1.0.0"}}',
      'node_modules/reader/package.json': '{"name": "reader", "main": "index.js"}',
      'node_modules/reader/index.js': `exports.read = () => require('fs').readFileSync('/etc/passwd');\n`,
    };
    await expect(bundle(files)).rejects.toMatchObject(refusal('node_modules/reader/index.js:1:'));
  });

  it.each([
    ['a top level that throws', `${head}throw new RangeError('boom');\n${body}`, 'the module cannot be loaded: RangeError: boom'],
    ['a rejected top level', `${head}await Promise.reject(new Error('late'));\n${body}`, 'Error: late'],
    ['process.exit', `${head}process.exit(3);\n${body}`, 'its process ended (exit 3)'],
    ['a top level that reads files', `${head}(process as any).getBuiltinModule('node:fs').readFileSync('/etc/passwd');\n${body}`, 'Access to this API has been restricted'],
    ['a top level that writes files', `${head}(process as any).getBuiltinModule('node:fs').writeFileSync('/tmp/x', '');\n${body}`, 'Access to this API has been restricted'],
    ['a top level that starts programs', `${head}(process as any).getBuiltinModule('node:child_process').execSync('id');\n${body}`, 'Access to this API has been restricted'],
    ['a default export that is no module', `export default 7;`, 'no module; wanted: export default defineProcessing'],
  ])('is refused with %s', async (_why, text, words) => {
    await expect(factsOf(text)).rejects.toMatchObject(refusal(words));
  }); // biome-ignore format: a table

  it('is refused with a top level that never ends, and its process with it', async () => {
    await expect(factsOf(`${head}for (;;) {}\n${body}`, 300)).rejects.toMatchObject(
      refusal('was not done after 0.3 s'),
    );
  });

  it('is refused with a fixture that is none, or whose file is missing', async () => {
    const files = { 'module.ts': `${head}${body}`, 'fixtures/a.json': '{"body": {"x": [1]}}' };
    await expect(prepareModule(await place(files))).rejects.toMatchObject(
      refusal('fixtures/a.json: wants either wanted'),
    );
    await expect(findModule(join(folder, 'none'))).rejects.toMatchObject({ code: 'not_found' });
    await expect(findModule(await place({ 'README.md': '' }))).rejects.toMatchObject(refusal('holds no module.ts'));
    await expect(findModule(join(await place({ 'a.py': '' }), 'a.py'))).rejects.toMatchObject(
      refusal('is no TypeScript file'),
    );
  });

  it('as `processing new` writes it for a task has no type errors, and answers as modules of the task do', async () => {
    const names = Object.keys(tasks);
    const every = Object.fromEntries(
      names.flatMap((task) => skeletonFiles('mine', task).map(({ path, text }) => [`${task}/${path}`, text])),
    );
    const all = await place({ ...every, 'all.ts': names.map((task) => `import './${task}/module.ts';\n`).join('') });
    expect(await typeFaults(join(all, 'all.ts'), all, sdk)).toEqual([]);
    for (const task of names) {
      const { body, wanted } = JSON.parse(every[`${task}/fixtures/first.json`]!);
      expect(taskFaults(task, { request: body, reply: wanted })).toEqual([]);
      const { bytes } = await bundleModule(await findModule(join(all, task)));
      const text = bytes.toString().replaceAll('"@perch/processing"', JSON.stringify(pathToFileURL(sdk.codeFile).href));
      const url = `data:text/javascript;base64,${Buffer.from(text).toString('base64')}`;
      const module: AnyModule = (await import(/* @vite-ignore */ url)).default;
      const ctx = { count: () => undefined } as never;
      const { inputs, carry } = await module.preprocess!(body, undefined, ctx);
      const state = { loaded: undefined, carry };
      expect(module.postprocess!(await module.process!(inputs, state, ctx), state, ctx)).toEqual(wanted);
    }
  });

  it('as `processing new` writes it is good, and its fixture as wanted in a thread and in a process', async () => {
    const files = Object.fromEntries(skeletonFiles('mine', 'lengths').map(({ path, text }) => [path, text]));
    const prepared = await prepareModule(await place(files));
    for (const isolation of ['worker', 'process'] as const) {
      const [verdict] = await runFixtures(prepared, { model: 'recorded', isolation });
      expect(verdict).toMatchObject({ name: 'first', ok: true, told: ['count answered 1'], differences: [] });
    }
    await writeFile(prepared.folder.fixtures[0]!.file, '{"body": {"text": ["a"]}, "wanted": {"lengths": [2]}}');
    const [differs] = await runFixtures(prepared, { model: 'recorded' });
    expect(differs).toMatchObject({ ok: false, differences: [{ path: 'lengths[0]' }] });
    expect(() => {
      throw verdictsFault([differs!]);
    }).toThrow('1 of 1 fixtures are not answered as wanted');
    await prepared.close();
  });
});
