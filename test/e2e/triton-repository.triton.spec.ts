import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Version } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { minilmFolder } from '../../scripts/models/minilm.mjs';
import { findTriton } from '../../scripts/real-triton.mjs';
import { Admin } from '../support/admin.ts';
import { scaleModel } from '../support/onnx.ts';
import { callerPython, ensembleConfig, pythonConfig, scalePython, trainedModels } from '../support/python-models.ts';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, startTriton } from '../support/real-triton.ts';
import { Stack } from '../support/stack.ts';
import { Person } from './cli-stack.ts';

const input = { x: [[1, 2, 3, 4]] };

async function lay(folder: string, files: Record<string, string | Uint8Array | null>): Promise<void> {
  for (const [path, bytes] of Object.entries(files)) {
    const file = join(folder, path);
    await mkdir(bytes === null ? file : dirname(file), { recursive: true });
    if (bytes !== null) await writeFile(file, bytes);
  }
}

/** As exporters write it: a model with three versions, an ensemble with its parts, a caller, a graph alone. */
const repository: Record<string, string | Uint8Array | null> = {
  'scale/config.pbtxt': `# kept as it is\n${pythonConfig('scale', 'version_policy: { latest { num_versions: 2 } }\n')}`,
  'scale/labels.txt': 'a\nb\n',
  'scale/configs/small.pbtxt': pythonConfig('scale'),
  'scale/1/model.py': scalePython(10),
  'scale/2/model.py': scalePython(20),
  'scale/10/model.py': scalePython(30),
  'chain/config.pbtxt': ensembleConfig('chain', ['chain_first', 'chain_second']),
  'chain/1': null,
  'chain_first/config.pbtxt': pythonConfig('chain_first'),
  'chain_first/1/model.py': scalePython(2),
  'chain_second/config.pbtxt': pythonConfig('chain_second'),
  'chain_second/1/model.py': scalePython(3),
  'chain_second/2/model.py': scalePython(5),
  'caller/config.pbtxt': pythonConfig('caller'),
  'caller/1/model.py': callerPython('scale', 1)
    .replace('parameters.get("PERCH_MODEL_scale", {"string_value": "scale"})["string_value"]', '"scale"')
    .replace('model_name=self.model', 'model_name="scale"'),
  'graph/1/model.onnx': scaleModel(7),
};

/** `SimpleNamespace(predict=operator.neg)`, pickled: as small as a model can be. */
const pickledNegation = 'gAJjdHlwZXMKU2ltcGxlTmFtZXNwYWNlCnEAKVJxAX1xAlgHAAAAcHJlZGljdHEDY19vcGVyYXRvcgpuZWcKcQRzYi4=';

describe.skipIf(missingReason('triton'))('Triton repositories in and out', () => {
  let triton: ModelServer;
  let stack: Stack;
  let admin: Admin;
  let person: Person;
  let folder: string;
  beforeAll(async () => {
    triton = await startTriton();
    stack = await Stack.start({ triton: { http: triton.http, grpc: triton.grpc, repository: triton.repository } });
    admin = new Admin(stack);
    person = await Person.make();
    folder = await mkdtemp(join(tmpdir(), 'perch-repository-'));
    await lay(join(folder, 'source'), repository);
  });
  afterAll(async () => {
    await person?.leave();
    await stack?.stop();
    await triton?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  const env = () => ({ PERCH_URL: stack.controlPlane.address, PERCH_API_KEY: stack.adminKey });
  async function perch<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const { code, out, err } = await person.run([...args, '-o', 'json'], { env: env() });
    if (code !== 0) throw new Error(`perch ${args.join(' ')} exited ${code}: ${err}`);
    return JSON.parse(out) as T;
  }
  const versions = async (model: string) =>
    (await admin.must<{ items: Version[] }>('GET', `/models/${model}/versions`)).items;
  const answer = async (endpoint: string) =>
    JSON.stringify((await admin.serve(endpoint, input)).body).replaceAll('.0', '');

  it('a dry run says what would come of it, and does nothing', async () => {
    const plan = await perch<{ versions: { model: string; from: string }[]; suggested: unknown; notes: string[] }>(
      ...['model', 'import', '--from', 'triton', join(folder, 'source'), '--project', 'in', '--dry-run'],
    );
    expect(plan.versions.map(({ model, from }) => `${model} ${from}`)).toEqual([
      'in/scale scale/1',
      'in/scale scale/2',
      'in/scale scale/10',
      'in/caller caller/1',
      'in/chain chain/1',
      'in/graph graph/1',
    ]);
    expect(plan.suggested).toContainEqual({ name: 'scale', maxVersions: 2 });
    expect(plan.notes).toEqual([
      'caller: its code calls scale, so caller uses in/scale',
      expect.stringContaining('chain_second: version 2 comes along; 1 is left out'),
      'scale: version_policy latest 2 becomes maxVersions 2',
    ]);
    expect(await versions('in/scale').catch(() => [])).toEqual([]);
  });

  it('imports a repository and serves it as Triton would; doing it again changes nothing', async () => {
    const args = ['model', 'import', '--from', 'triton', join(folder, 'source'), '--project', 'in', '--endpoint', 'in'];
    const first = await perch<{ versions: { outcome: string }[] }>(...args);
    expect(first.versions.map(({ outcome }) => outcome)).toEqual(Array(6).fill('created'));
    await admin.untilServed('in/scale', 3, input, 120_000);
    await admin.untilServed('in/chain', 1, input, 120_000);
    await admin.untilServed('in/caller', 1, input, 120_000);
    await admin.untilServed('in/graph', 1, input, 120_000);
    expect(await answer('in/scale')).toContain('30,60,90,120');
    expect(await answer('in/chain')).toContain('10,20,30,40');
    expect(await answer('in/caller')).toContain('31,61,91,121');
    expect(await answer('in/graph')).toContain('7,14,21,28');
    expect((await admin.endpoint('in/scale')).spec.model.maxVersions).toBe(2);
    const again = await perch<{ versions: { outcome: string }[]; endpoints: { outcome: string }[] }>(...args);
    expect(new Set(again.versions.map(({ outcome }) => outcome))).toEqual(new Set(['already there']));
    expect(new Set(again.endpoints.map(({ outcome }) => outcome))).toEqual(new Set(['exists']));
  });

  it.each(['scale', 'chain', 'caller', 'graph'])('%s: import, export, import is the same manifest', async (name) => {
    const out = join(folder, 'out', name);
    await perch('endpoint', 'export', `in/${name}`, out);
    expect(await readdir(out)).toEqual(expect.arrayContaining(['Containerfile', 'README.md', 'models']));
    await perch('model', 'import', '--from', 'triton', out, '--project', `back-${name}`);
    const [before] = await versions(`in/${name}`);
    const [after] = await versions(`back-${name}/${name}`);
    expect(after!.manifestDigest).toBe(before!.manifestDigest);
    expect(existsSync(join(out, 'models/graph/config.pbtxt'))).toBe(false);
  });

  it('what was exported is served by a Triton that knows nothing of Perch', async () => {
    const models = join(folder, 'alone');
    for (const name of ['chain', 'caller']) await cp(join(folder, 'out', name, 'models'), models, { recursive: true });
    const alone = await startTriton({ repository: models, extra: ['--load-model=*'] });
    try {
      for (const [name, answered] of [
        ['chain', '10,20,30,40'],
        ['caller', '31,61,91,121'],
      ] as const) {
        const reply = await fetch(`http://${alone.http}/v2/models/${name}/infer`, {
          method: 'POST',
          body: JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }] }),
        });
        const body = (await reply.json()) as { outputs?: { data: number[] }[] };
        expect(body.outputs?.[0]?.data.join(','), await alone.tail(40)).toBe(answered);
      }
    } finally {
      await alone.remove();
    }
  });

  it('a plain ONNX version is exported with the configuration that it is served with', async () => {
    await admin.upload('in/bare', { 'model.onnx': scaleModel(3) });
    await admin.addEndpoint({ name: 'in/bare', model: { project: 'in', name: 'bare' } });
    await admin.untilServed('in/bare', 1, input, 60_000);
    const out = join(folder, 'out', 'bare');
    await perch('endpoint', 'export', 'in/bare', out);
    expect(await readFile(join(out, 'models/bare/config.pbtxt'), 'utf8')).toContain('name: "bare"');
    expect(await readdir(join(out, 'models/bare/1'))).toEqual(['model.onnx']);
    const taken = await person.run(['endpoint', 'export', 'in/bare', out], { env: env() });
    expect(taken.err).toContain('is not empty');
    expect(taken.code).toBe(4);
  });

  it('an older version is exported by its number, under the number that its folder had', async () => {
    const out = join(folder, 'out', 'older');
    await perch('endpoint', 'export', 'in/scale', out, '--version', '2');
    expect(await readdir(join(out, 'models/scale'))).toEqual(['2', 'config.pbtxt', 'configs', 'labels.txt']);
    expect(await readFile(join(out, 'models/scale/2/model.py'), 'utf8')).toBe(scalePython(20));
    const none = await person.run(['endpoint', 'export', 'in/scale', join(folder, 'none'), '--version', '9'], {
      env: env(),
    });
    expect(none.code).toBe(3);
  });

  it('a pickled model is served where somebody allows it, and the audit log keeps that', async () => {
    const file = join(folder, 'negative.pkl');
    await writeFile(file, Buffer.from(pickledNegation, 'base64'));
    const importing = ['model', 'import', 'in/negative', file, '--engine', 'sklearn', '--endpoint', 'in/negative'];
    const refused = await person.run(importing, { env: env() });
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('runs any code that its author put in')]);
    const unsaid = { files: [{ path: '1/m.pkl', sha256: 'a'.repeat(64), size: 1 }], metadata: { engine: 'sklearn' } };
    expect((await admin.call('POST', '/models/in/negative/versions', unsaid)).status).toBe(400);
    const made = await perch<Version>(...importing, '--allow-pickle');
    expect([made.framework, made.metadata]).toEqual(['python', { engine: 'sklearn' }]);
    await admin.untilServed('in/negative', 1, input, 60_000);
    expect((await admin.serve('in/negative', input)).body).toEqual({ y: [[-1, -2, -3, -4]] });
    const { items } = await admin.must<{ items: { action: string; detail: object }[] }>('GET', '/audit?limit=200');
    expect(items).toContainEqual(
      expect.objectContaining({
        action: 'version.create',
        detail: expect.objectContaining({ allowPickle: ['1/negative.pkl'] }),
      }),
    );
    await perch(...'model add --engine sklearn --endpoint in/again --project in --name negative'.split(' '));
    await admin.untilServed('in/again', 1, input, 60_000);
  });

  it('models that scikit-learn and XGBoost trained answer as they do in Python', async () => {
    const printed = execFileSync(findTriton().python!, ['-c', trainedModels, folder], { encoding: 'utf8' });
    const { rows, said } = JSON.parse(printed) as { rows: number[][]; said: Record<string, number[][]> };
    const importing = (name: string, file: string, ...more: string[]) =>
      perch('model', 'import', `in/${name}`, join(folder, file), '--endpoint', `in/${name}`, ...more);
    await importing('trees', 'trees.ubj', '--engine', 'xgboost');
    await importing('logit', 'logit.joblib', ...'--engine sklearn --method predict_proba --allow-pickle'.split(' '));
    for (const [name, wanted] of Object.entries(said)) {
      await admin.untilServed(`in/${name}`, 1, { x: rows }, 60_000);
      const { y } = (await admin.serve<{ y: number[][] }>(`in/${name}`, { x: rows })).body;
      const near = wanted.map((values) => values.map((value) => expect.closeTo(value, 5)));
      expect([name, y]).toEqual([name, near]);
    }
    expect(new Set(said.logit!.map(([first]) => first! > 0.5)).size).toBe(2); // it tells them apart
  });

  it('a library that the servers lack is named, with how to get it', async () => {
    const file = join(folder, 'boosted.txt');
    await writeFile(file, 'tree\n');
    await perch('model', 'import', 'in/boosted', file, '--engine', 'lightgbm', '--endpoint', 'in/boosted');
    const said = async () => JSON.stringify((await admin.endpoint('in/boosted')).status);
    await expect.poll(said, { timeout: 60_000, interval: 200 }).toContain('pip install lightgbm');
  });

  it('a Hugging Face folder is served by what it says of itself', async () => {
    const source = await minilmFolder(1);
    const place = join(folder, 'minilm');
    for (const name of ['model.onnx', 'tokenizer.json'])
      await lay(place, { [name]: await readFile(join(source, name)) });
    await lay(place, {
      'config.json': '{"architectures": ["BertModel"], "model_type": "bert", "max_position_embeddings": 512}',
      'sentence_bert_config.json': '{"max_seq_length": 128}',
      '1_Pooling/config.json': '{"pooling_mode_mean_tokens": true}',
      'modules.json':
        '[{"type": "s.models.Transformer"}, {"type": "s.models.Pooling"}, {"type": "s.models.Normalize"}]',
    });
    const options = { maxTokens: 128, pooling: 'mean', normalize: true };
    const made = await perch<Version>('model', 'import', 'in/minilm', place, '--endpoint', 'in/minilm');
    expect(made.processing).toEqual({ builtin: 'text-embedding', options });
    expect(made.metadata).toMatchObject({ task: 'text-embedding', 'hf.model_type': 'bert', 'hf.max_tokens': '128' });
    await admin.untilServed('in/minilm', 1, { text: 'hello' }, 90_000);
    const { embedding } = (await admin.serve<{ embedding: number[] }>('in/minilm', { text: 'hello' })).body;
    expect(embedding).toHaveLength(384);
    expect(Math.hypot(...embedding)).toBeCloseTo(1, 4);
    const classified = await person.run(['model', 'import', 'in/other', place, '--task', 'image-classification'], {
      env: env(),
    });
    expect([classified.code, classified.err]).toEqual([
      2,
      expect.stringContaining('image-classification does not fit'),
    ]);
  });

  it.each<[string, Record<string, string | null>, string]>([
    ['no repository', { 'notes.txt': 'x' }, 'is no Triton repository'],
    [
      'a broken text',
      { 'm/config.pbtxt': 'name: "m"\nplatform python\n', 'm/1/model.py': 'x' },
      'm/config.pbtxt, line 2',
    ],
  ])('%s is refused with words that say so', async (name, files, words) => {
    const place = join(folder, `bad ${name}`);
    await lay(place, files);
    const { code, err } = await person.run(
      ['model', 'import', '--from', 'triton', place, '--project', 'bad', '-o', 'json'],
      { env: env() },
    );
    expect(err).toContain(JSON.stringify(words).slice(1, -1));
    expect(code).toBe(2);
  });
});
