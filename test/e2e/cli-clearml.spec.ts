import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Endpoint, Version } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaleModel } from '../support/onnx.ts';
import { Person, type Up, until } from './cli-stack.ts';

let person: Person;
let up: Up;
beforeAll(async () => {
  person = await Person.make();
  up = await person.up();
  await writeFile(join(person.folder, 'model.bin'), scaleModel(1));
  await writeFile(join(person.folder, 'preprocess.py'), 'from transformers import AutoTokenizer\n');
}, 180_000);
afterAll(async () => {
  await up?.end();
  await person?.leave();
});

/** A pasted line, split as a shell would; the name of the program is all that changed. */
function words(line: string): string[] {
  const found: string[] = [];
  for (const match of line.replace(/\\\n\s*/g, ' ').matchAll(/(?:"((?:\\.|[^"\\])*)"|'([^']*)'|(?:\\.|[^\s"'\\])+)+/g))
    found.push(
      match[0].replace(
        /"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/g,
        (_all, double, single, escaped) => double ?? single ?? escaped,
      ),
    );
  return found.slice(1);
}
const paste = (line: string) => person.run(words(line));

const tensors =
  '--input-size -1 4 --input-name "x" --input-type float32 --output-size -1 4 --output-name "y" --output-type float32';

describe("ClearML's command lines, pasted", () => {
  it('upload, add, list, remove', async () => {
    const created = await paste('perch create --name "serving example" --tags a b --project DevOps');
    expect(created).toMatchObject({ code: 0, out: 'New Serving Service created: id=serving example\n' });
    expect((await paste('perch list')).out).toMatch(/serving example +http.* running/);

    const uploaded = await paste(
      'perch --id "serving example" model upload --name "train model - v1" --tags best "new one" --project "serving examples" --framework pytorch --path model.bin --publish --destination s3://bucket/folder/',
    );
    expect(uploaded.code).toBe(0);
    expect(uploaded.err).toContain('note: project "serving examples" is called serving-examples here');
    expect(uploaded.err).toContain('--destination is not used');
    const id = /Model ID=(\S+)/.exec(uploaded.out)?.[1] as string;
    const version = await person.json<Version>('model', 'show', 'serving-examples/train-model-v1@1');
    expect(version).toMatchObject({ id, state: 'published', framework: 'pytorch', tags: ['best', 'new-one'] });

    const added = await paste(
      `perch --id 0123456789abcdef model add --engine triton --endpoint "test_model" --name "train model - v1" --project "serving examples" \\
         ${tensors} \\
         --aux-config platform=\\"onnxruntime_onnx\\" default_model_filename=\\"model.bin\\"`,
    );
    expect(added).toMatchObject({ code: 0, out: expect.stringContaining('serves serving-examples/train-model-v1@1') });
    expect(added.err).toContain('warning: --id 0123456789abcdef is not the name of a context');
    const { spec } = await person.json<Endpoint>('endpoint', 'show', 'test_model');
    expect(spec.engine).toMatchObject({
      platform: 'onnxruntime_onnx',
      defaultModelFilename: 'model.bin',
      maxBatchSize: 0,
      inputs: [{ name: 'x', type: 'FP32', dims: [-1, 4] }],
    });
    await until(
      async () => (await person.run(['endpoint', 'infer', 'test_model', '--json', '{"x": [[1,2,3,4]]}'])).code === 0,
      30_000,
    );

    const byId = await paste(
      `perch model add --engine triton --endpoint other --version 1 --model-id ${id} --aux-config platform='onnxruntime_onnx' max_batch_size=8 dynamic_batching.preferred_batch_size="[4,8]" --input-size "[4]" --input-name x --input-type float32 --output-size '[4]' --output-name y --output-type float32 --wait`,
    );
    expect(byId).toMatchObject({ code: 0 });
    const batched = await person.json<Endpoint>('endpoint', 'show', 'other/1');
    expect(batched.spec.engine).toMatchObject({
      maxBatchSize: 8,
      dynamicBatching: { preferredSizes: [4, 8] },
      inputs: [{ dims: [4] }],
    });

    const listed = (await paste('perch model list')).out;
    expect(listed).toContain('serving-examples/train-model-v1');
    for (const title of ['Endpoints:', 'Model Monitoring', 'Canary:']) expect(listed).toContain(title);
    expect(await paste('perch model remove --endpoint "test_model"')).toMatchObject({ code: 0 });
    expect((await paste('perch model remove --endpoint "test_model"')).code).toBe(3);
  }, 120_000);

  it('auto-update follows new versions', async () => {
    await writeFile(join(person.folder, 'model.onnx'), scaleModel(5));
    await paste('perch model upload --name auto --project p --path model.onnx');
    const line = `perch --id x model auto-update --engine triton --endpoint "auto" --name "auto" --project "p" --max-versions 2 ${tensors}`;
    expect(await paste(`${line} --wait`)).toMatchObject({ code: 0, out: expect.stringContaining('follows p/auto') });
    expect((await person.json<Endpoint>('endpoint', 'show', 'auto')).spec.model).toMatchObject({
      maxVersions: 2,
      select: { published: false, tagMatch: 'any' },
    });
    expect((await paste(`${line} --published --tags prod`)).out).toContain('updated'); // the same line again changes it
    expect((await paste('perch model list')).out).toMatch(/auto +p\/auto .*prod/);
  }, 120_000);

  it('canary shares one name out: a list, or the newest below a prefix in either spelling', async () => {
    await writeFile(join(person.folder, 'model.onnx'), scaleModel(6));
    expect(await paste('perch model upload --name auto --project p --path model.onnx --tags prod --publish')).toMatchObject({ code: 0 }); // biome-ignore format: one row reads better
    const list = 'perch --id x model canary --endpoint "auto_canary" --weights 0.1 0.9 --input-endpoints auto/2 auto/1';
    expect(await paste(`${list} --wait`)).toMatchObject({ err: expect.any(String), code: 0, out: expect.stringContaining('auto/2 0.1, auto/1 0.9 (created') }); // biome-ignore format: one row reads better
    expect((await paste('perch model list')).out).toMatch(/auto_canary +0.1, 0.9 +auto\/2, auto\/1/);
    const removed = await paste('perch model remove --endpoint auto');
    expect([removed.code, removed.err]).toEqual([4, expect.stringContaining('in use by split auto_canary')]);
    for (const flag of ['--input-endpoints-prefix auto/', '--input-endpoint-prefix auto']) {
      const done = await paste(`perch model canary --endpoint auto_canary --weights 0.2 0.8 ${flag} --wait`);
      expect(done, done.err).toMatchObject({ code: 0, out: expect.stringContaining('newest first below auto/: 0.2, 0.8') }); // biome-ignore format: one row reads better
    }
    expect((await person.run(['endpoint', 'infer', 'auto_canary', '--json', '{"x": [[1,2,3,4]]}'])).code).toBe(0);
    expect(await paste('perch model remove --endpoint auto_canary')).toMatchObject({ code: 0 });
    expect((await paste('perch model remove --endpoint auto_canary')).code).toBe(3);
  }, 120_000);

  it('--engine custom_async with a module and no model; its next version is its next number', async () => {
    const module = (name: string) => `import { defineProcessing } from '@perch/processing';
export default defineProcessing({
  preprocess: (body: { x: number[] }) => ({ inputs: {}, carry: body.x }),
  process: (_inputs, { carry }) => ({ by: '${name}', sum: carry.reduce((a, b) => a + b, 0) }),
});
`;
    const line = 'perch model add --engine custom_async --endpoint test_model_sum --preprocess sum.ts --wait';
    for (const [at, name] of ['first', 'second'].entries()) {
      await writeFile(join(person.folder, 'sum.ts'), module(name));
      expect(await paste(line)).toMatchObject({
        code: 0,
        out: expect.stringContaining(`runs module test_model_sum@${at + 1}`),
      });
      let out = '';
      await until(async () => {
        out = (await person.run(['endpoint', 'infer', 'test_model_sum', '--json', '{"x": [1, 2, 3]}'])).out;
        return out.includes(name);
      }, 30_000);
      expect(JSON.parse(out)).toEqual({ by: name, sum: 6 });
    }
    expect((await person.run(['endpoint', 'show', 'test_model_sum'])).out).toMatch(
      /follows +no model: its module does all the work/,
    );
  }, 120_000);

  it('metrics count what requests hold', async () => {
    const line = 'perch metrics add --endpoint other/1 --variable-scalar x=1,3 --variable-enum kind=a,b --log-freq 1.0';
    expect(await paste(line)).toMatchObject({ code: 0, out: expect.stringContaining('counts x, kind') });
    expect((await paste('perch metrics list')).out).toMatch(/other\/1 +x +scalar +1, 3 +1/);
    const sum = 'perch_endpoint_metric_sum{endpoint="other/1",version="1",arm=';
    await until(async () => {
      await person.run(['endpoint', 'infer', 'other/1', '--json', '{"x": [[1,2,3,4]]}']);
      return (await (await fetch(`${up.line.router}/metrics`)).text()).includes(sum);
    }, 30_000);
    expect(await paste('perch metrics remove --endpoint other/1 --variable kind')).toMatchObject({ code: 0 });
    expect((await paste('perch metrics list --endpoint other/1')).out).not.toContain('kind');
  }, 60_000);

  it.each([
    [
      `perch model add --engine triton --endpoint e --name auto --project p --preprocess "preprocess.py" ${tensors}`,
      2,
      'defineProcessing',
    ],
    [
      `perch model add --engine triton --endpoint e --name auto --project p --preprocess missing.py ${tensors}`,
      2,
      'defineProcessing',
    ],
    ['perch model add --engine sklearn --endpoint e --name auto --project p', 2, '--allow-pickle'],
    ['perch model add --engine triton --endpoint e --name auto --project p --input-size 1 x', 2, '--input-size'],
    [
      'perch model add --engine triton --endpoint e --name auto --project p --input-size 1 2 --input-type float32',
      2,
      '--input-name',
    ],
    ['perch model add --engine triton --endpoint e --name nothing --project p', 3, 'p/nothing'],
    ['perch model auto-update --engine triton --endpoint e --name "au.*" --project p', 2, 'is a pattern'],
    ['perch model canary --endpoint e --weights --input-endpoint-prefix auto', 2, '--weights'],
    ['perch model canary --endpoint e --input-endpoint-prefix auto', 2, '--weights'],
    ['perch model canary --endpoint e --weights 0.1 0.9 --input-endpoints auto', 2, 'one for each'],
    ['perch model canary --endpoint e --weights 1 --input-endpoints nothing/1', 2, 'there is no endpoint nothing'],
    ['perch metrics add --endpoint nothing --variable-scalar x=0,1', 3, 'nothing'],
    ['perch metrics add --endpoint auto', 2, 'which metrics?'],
    ['perch model upload --name x --project p', 2, '--url'],
    ['perch model upload --name x --path model.onnx', 2, '--project'],
    ['perch config --triton-grpc-server 10.0.0.1:8001', 2, 'perch key join --server'],
  ])('%s exits %i', async (line, code, text) => {
    const ran = await paste(line);
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(text);
  });

  it('config sets the router, and checks the Triton', async () => {
    const [server] = await person.json<{ grpc: string }[]>('fleet', 'servers');
    const done = await paste(
      `perch config --base-serving-url ${up.line.router}/serve --triton-grpc-server ${server?.grpc} --kafka-metric-server x:1 --metric-log-freq 1.0`,
    );
    expect(done).toMatchObject({ code: 0, out: expect.stringContaining(`router ${up.line.router}`) });
  });
});
