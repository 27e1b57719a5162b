import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ProcessingModuleRecord } from '@perch/contracts';
import { expect, it } from 'vitest';
import { scaleModel } from '../support/onnx.ts';
import { type Person, type Ran, until } from './cli-stack.ts';

const module = `import { asFloats, defineProcessing, float32 } from '@perch/processing';

export default defineProcessing({
  task: 'lengths',
  load: async ({ files }) => ({ labels: await files.labels() }),
  preprocess(body: { text: string[] }) {
    const values = body.text.flatMap((text) => [text.length, 1, 1, 1]);
    return { inputs: { x: float32(values, [body.text.length, 4]) }, carry: body.text };
  },
  postprocess(outputs, { loaded, carry }) {
    const scores = asFloats(outputs['y']!);
    return carry.map((text, at) => ({ text, label: loaded.labels[at % 2], score: scores[at * 4] }));
  },
});
`;
const body = { text: ['ab', 'abc'] };
const wanted = [
  { text: 'ab', label: 'bad', score: 4 },
  { text: 'abc', label: 'good', score: 6 },
];

interface Tested {
  fixtures: { name: string; ok: boolean; differences: { path: string; words: string }[] }[];
}

/** From a module's file to an endpoint that runs it, with the programs that are up. */
export function moduleSuite(someone: () => Person): void {
  const write = async (path: string, content: string | Uint8Array) => {
    const file = join(someone().folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  };
  const run = (...args: string[]) => someone().run(args);

  it('is written, tested against the real model, recorded, registered and bound', async () => {
    const person = someone();
    await write('scale-by-two.onnx', scaleModel(2));
    await run('model', 'upload', 'modules/scale', 'scale-by-two.onnx', '--publish');
    expect(await run('endpoint', 'add', 'modules/lengths', '--model', 'modules/scale', '--wait')).toMatchObject({
      code: 0,
    });
    await write('lengths/module.ts', module);
    await write('lengths/files/labels.txt', 'bad\ngood\n');
    await write('lengths/fixtures/first.json', JSON.stringify({ body, wanted }));
    const real = await person.json<Tested>(
      'processing',
      'test',
      'lengths',
      '--endpoint',
      'modules/lengths',
      '--record',
    );
    expect(real.fixtures).toMatchObject([{ name: 'first', ok: true, differences: [] }]);
    const recording = await readFile(join(person.folder, 'lengths/fixtures/first.recorded.json'), 'utf8');
    expect(JSON.parse(recording)).toMatchObject({ signature: { inputs: [{ name: 'x' }] } });

    const other = [wanted[0], { ...wanted[1], label: 'fair' }];
    await write('lengths/fixtures/first.json', JSON.stringify({ body, wanted: other }));
    const differs = await run('processing', 'test', 'lengths');
    expect(differs).toMatchObject({ code: 1, out: expect.stringContaining('[1].label: wanted "fair", got "good"') });

    await write('lengths/fixtures/first.json', JSON.stringify({ body, wanted }));
    const added = await person.json<ProcessingModuleRecord>('processing', 'add', 'lengths', '--name', 'text/lengths');
    expect(added).toMatchObject({ number: 1, outcome: 'registered', tested: 1, facts: { task: 'lengths' } });
    expect(added.files.map(({ path }) => path)).toEqual(['fixtures/first.json', 'labels.txt', 'module.mjs']);

    const bound = await run('endpoint', 'update', 'modules/lengths', '--processing', 'text/lengths', '--wait');
    expect(bound).toMatchObject({ code: 0 });
    let answer = { code: null, out: '', err: '' } as Ran;
    const asked = async () => {
      answer = await run('endpoint', 'infer', 'modules/lengths', '--json', JSON.stringify(body));
      return answer.code === 0;
    };
    await until(asked, 20_000, () => answer.err); // the version is the same: until then the old deployment answers
    expect(JSON.parse(answer.out)).toEqual(wanted);
    const removal = await run('processing', 'remove', 'text/lengths@1');
    expect(removal).toMatchObject({ code: 4, err: expect.stringContaining('in use by endpoint modules/lengths') });
    expect((await run('processing', 'list', '--task', 'lengths')).out).toContain('text/lengths@1');
    expect((await run('processing', 'show', 'text/lengths@1')).out).toContain('labels.txt');
    expect((await run('__complete', '--', 'processing', 'show', '')).out).toContain('text/lengths');
  });
}
