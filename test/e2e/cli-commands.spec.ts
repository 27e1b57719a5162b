import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Endpoint, Split, Version } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { scaleModel } from '../support/onnx.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { moduleSuite } from './cli-modules.ts';
import { Person, type Up, until } from './cli-stack.ts';

let person: Person;
let up: Up;
beforeAll(async () => {
  person = await Person.make();
  up = await person.up();
}, 180_000);
afterAll(async () => {
  await up?.end();
  await person?.leave();
});

const run = (...args: string[]) => person.run(args);
const write = (name: string, bytes: Uint8Array | string) => writeFile(join(person.folder, name), bytes);
const ones = '{"x": [[1, 1, 1, 1]]}';

describe('from a file to an answer', () => {
  it('uploads, publishes, serves and asks', async () => {
    await write('one.onnx', scaleModel(1));
    const uploaded = await person.json<Version & { outcome: string }>(
      'model',
      'upload',
      'nlp/scale',
      'one.onnx',
      '--tag',
      'prod',
      '--metadata',
      'accuracy=0.9',
      '--description',
      'first',
      '--git-commit',
      'abc',
    );
    expect(uploaded).toMatchObject({
      number: 1,
      state: 'draft',
      outcome: 'created',
      tags: ['prod'],
      metadata: { accuracy: '0.9' },
      lineage: { gitCommit: 'abc' },
    });
    expect(await run('model', 'publish', 'nlp/scale@1')).toMatchObject({ code: 0, out: 'nlp/scale@1 is published.\n' });
    const added = await run('endpoint', 'add', 'text/scale', '--model', 'nlp/scale', '--max-versions', '2', '--wait');
    expect(added).toMatchObject({ code: 0, out: 'Endpoint text/scale serves version 1.\n', err: '' });
    await write('ones.json', ones);
    for (const body of [
      ['--json', ones],
      ['--file', 'ones.json'],
    ])
      expect(JSON.parse((await run('endpoint', 'infer', 'text/scale', ...body)).out)).toEqual({ y: [[1, 1, 1, 1]] });
    expect((await person.run(['endpoint', 'infer', 'text/scale', '-'], { input: ones })).out).toContain('[[1,1,1,1]]');
  });
  it('serves the next published version by itself, and the first one by its number', async () => {
    await write('two.onnx', scaleModel(2));
    const published = await run('model', 'upload', 'nlp/scale', 'two.onnx', '--publish', '--wait');
    expect(published.out).toContain('Served by text/scale.');
    await until(
      async () => (await run('endpoint', 'infer', 'text/scale', '--json', ones)).out.includes('[[2,2,2,2]]'),
      20_000,
    );
    expect((await run('endpoint', 'infer', 'text/scale', '1', '--json', ones)).out).toContain('[[1,1,1,1]]');
    const shown = await run('endpoint', 'show', 'text/scale');
    expect(shown.out).toMatch(/phase +ready/);
    expect(shown.out).toMatch(/2 +ready +100 %/);
    expect(parse((await run('endpoint', 'list', '-o', 'yaml')).out)).toHaveLength(1);
  });
  it('does the same upload twice only once, and resumes one that was cut off', async () => {
    const again = await person.json('model', 'upload', 'nlp/scale', 'two.onnx', '--tag', 'late');
    expect(again).toMatchObject({ number: 2, outcome: 'already there', sentBytes: 0, tags: ['late'] });
    const big = Buffer.alloc(200 * 1024 * 1024);
    for (let at = 0; at < big.length; at += 4096) big.writeUInt32LE(at + 1, at);
    await write('big.bin', big);
    const cut = person.spawn(['model', 'upload', 'big/file', 'big.bin', '-o', 'json']);
    const ended = new Promise((done) => cut.once('close', done));
    await until(async () => (await run('model', 'show', 'big/file@1')).out.includes('uploading'), 60_000);
    cut.kill('SIGKILL');
    await ended;
    const resumed = await person.json<Version & { outcome: string }>('model', 'upload', 'big/file', 'big.bin');
    expect(['resumed', 'already there']).toContain(resumed.outcome);
    expect(resumed).toMatchObject({ number: 1, state: 'draft' });
    const down = await run('model', 'download', 'big/file@1', 'down');
    expect(down).toMatchObject({ code: 0, out: expect.stringContaining('every hash right') });
    expect(Buffer.compare(await readFile(join(person.folder, 'down', 'big.bin')), big)).toBe(0);
  }, 240_000);
  it('registers what lies elsewhere', async () => {
    const server = createHttpServer((request, reply) => {
      if (request.url !== '/model.onnx') reply.writeHead(404).end();
      else reply.end(scaleModel(7));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const at = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    expect((await run('model', 'upload', 'nlp/url', '--url', `${at}/model.onnx`)).out).toContain(
      'fetched by the control plane',
    );
    expect(await run('model', 'upload', 'nlp/url', '--url', `${at}/none`)).toMatchObject({
      code: 3,
      err: expect.stringContaining('/none'),
    });
    expect(await run('model', 'upload', 'nlp/url', '--url', 'gs://bucket/x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('gs://'),
    });
    server.close();
  });
  it('moves versions through their states, and says why one cannot move', async () => {
    for (const verb of ['publish', 'unpublish', 'archive'])
      expect((await run('model', verb, 'nlp/url@1')).code).toBe(0);
    expect(await run('model', 'publish', 'nlp/url@1')).toMatchObject({
      code: 2,
      err: expect.stringContaining('restore it first'),
    });
    expect((await run('model', 'restore', 'nlp/url@latest')).out).toContain('is a draft again');
  });
  it('finds models by tag and metadata, and describes them', async () => {
    expect((await run('model', 'list', '--tag', 'prod')).out).toContain('nlp/scale');
    expect((await run('model', 'list', '--tag', 'nobody')).out).toBe('No model fits.\n');
    expect((await run('model', 'list', '--metadata', 'accuracy=0.9')).out).toContain('nlp/scale');
    await run('model', 'describe', 'nlp/scale@1', '--description', 'the first', '--metadata', 'note=x');
    expect((await run('model', 'show', 'nlp/scale@1')).out).toMatch(/description +the first/);
    expect(await run('model', 'tag', 'nlp/scale@1', '--remove', 'prod', '--add', 'old')).toMatchObject({
      code: 0,
      out: expect.stringContaining('old'),
    });
  });
});

describe('specifications', () => {
  it('are applied from files, several in one, with paths that count from the file', async () => {
    await mkdir(join(person.folder, 'specs'));
    await write('specs/extra.pbtxt', 'parameters { key: "made_by" value: { string_value: "perch" } }\n');
    const yaml =
      'kind: Split\nname: ab\ntargets: [a, b]\nweights: [1, 3]\n---\nkind: Endpoint\nname: a\nmodel: {project: nlp, name: scale, version: 1}\nengine: {config: ./extra.pbtxt}\n---\nname: b\nmodel: {project: nlp, name: scale}\n';
    await write('specs/both.yaml', yaml);
    const before = await run('diff', '-f', 'specs/both.yaml');
    expect(before).toMatchObject({ code: 1, out: expect.stringContaining('Endpoint a would be added') });
    expect(before.out).toContain('Split ab would be added');
    expect((await run('endpoint', 'show', 'a')).code).toBe(3);
    const applied = await run('apply', '-f', 'specs/both.yaml', '--wait');
    expect(applied).toMatchObject({ code: 0, out: expect.stringContaining('Endpoint b is added') });
    expect(await run('diff', '-f', 'specs/both.yaml')).toMatchObject({
      code: 0,
      out: expect.stringContaining('is as it should be'),
    });
    expect((await person.json<Endpoint>('endpoint', 'show', 'a')).spec.engine.config).toContain('made_by');
  });
  it('of splits, and the verbs that change them', async () => {
    expect((await person.json<Split>('split', 'show', 'ab')).arms.map((arm) => arm.weightPercent)).toEqual([25, 75]);
    expect((await run('endpoint', 'infer', 'ab', '--json', '{"x": [[1,2,3,4]]}')).code).toBe(0);
    const changed = await run('split', 'update', 'ab', '--target', 'a=9', '--target', 'b=1', '--sticky', 'x-user');
    expect(changed.out).toContain('Split ab is changed (generation 2): 90 % to a, 10 % to b.');
    expect((await run('split', 'update', 'ab', '--target', 'a=1', '--if-generation', '1')).code).toBe(4);
    expect((await run('split', 'list')).out).toMatch(/ab +a 9, b 1 +2 +90 % to a/);
    expect((await run('split', 'show', 'ab')).out).toMatch(/sticky +x-user[\s\S]*a +a +1 +90 %/);
    expect((await run('split', 'add', 'ab', '--target', 'a')).code).toBe(4);
    expect(await run('split', 'add', 'x', '--target', 'none')).toMatchObject({ code: 2, err: expect.stringContaining('there is no endpoint none') }); // biome-ignore format: one row reads better
    expect(await run('split', 'add', 'x')).toMatchObject({ code: 2, err: expect.stringContaining('--target') });
    expect((await run('endpoint', 'remove', 'b')).err).toContain('in use by split ab (b)');
    expect((await run('split', 'remove', 'ab')).code).toBe(0);
    expect((await run('split', 'show', 'ab')).code).toBe(3);
  });
  it('change nothing when one document of several is wrong, and name it', async () => {
    await write(
      'wrong.yaml',
      'name: c\nmodel: {project: nlp, name: scale}\n---\nname: d\nmodel: {project: nlp, nme: scale}\n',
    );
    expect(await run('apply', '-f', 'wrong.yaml')).toMatchObject({
      code: 2,
      err: expect.stringContaining('wrong.yaml, document 2'),
    });
    expect((await run('endpoint', 'show', 'c')).code).toBe(3);
  });
  it('have a history to go back in', async () => {
    await person.json('endpoint', 'update', 'b', '--timeout', '5s');
    const history = await run('endpoint', 'history', 'b');
    expect(history.out.split('\n').length).toBeGreaterThan(2);
    await person.json('endpoint', 'rollback', 'b', '--to', '1', '--reason', 'slow');
    expect((await person.json<Endpoint>('endpoint', 'show', 'b')).spec.limits.timeoutMs).toBe(60_000);
  });
  it('of two writers one is told what the other wrote', async () => {
    const stale = await run('endpoint', 'update', 'b', '--timeout', '9s', '--if-generation', '1');
    expect(stale.code).toBe(4);
    expect(stale.err).toMatch(/somebody changed it[\s\S]*you: limits\.timeoutMs: 60000 -> 9000/);
    expect(await run('endpoint', 'add', 'b', '--model', 'nlp/scale')).toMatchObject({
      code: 4,
      err: expect.stringContaining('b'),
    });
    expect((await run('endpoint', 'remove', 'b', '--wait')).code).toBe(0);
  });
});

describe('a database of their own', () => {
  it('is brought up to date, said to be, and taken back by one step', async () => {
    const database = await createTestDatabase({ migrated: false });
    const migrate = (...args: string[]) => run('migrate', '--postgres', database.url, ...args);
    expect(await migrate()).toMatchObject({ code: 0, out: expect.stringMatching(/^Done: .*Add/) });
    expect(await migrate()).toMatchObject({ code: 0, out: 'The database is up to date.\n' });
    expect((await migrate('--down')).code).toBe(0);
    expect((await migrate()).out).toMatch(/^Done: \w+\.$/m);
    await database.drop();
    expect((await run('migrate', '--postgres', 'postgres://nobody:x@127.0.0.1:1/none')).code).toBe(1);
    expect((await run('migrate')).code).toBe(2);
  });
});

describe('who may do what', () => {
  it('keys: each role as far as it goes, and no further once revoked', async () => {
    const key = await person.json<{ id: string; secret: string }>(
      'key',
      'create',
      'reader',
      '--role',
      'viewer',
      '--expires',
      '1d',
    );
    const env = { PERCH_API_KEY: key.secret };
    expect((await person.run(['model', 'list'], { env })).code).toBe(0);
    expect((await person.run(['model', 'publish', 'nlp/scale@1'], { env })).code).toBe(5);
    expect((await run('key', 'list')).out).not.toContain(key.secret);
    expect((await run('key', 'revoke', key.id)).code).toBe(0);
    expect(await person.run(['model', 'list'], { env })).toMatchObject({
      code: 5,
      err: expect.not.stringContaining(key.secret),
    });
    expect((await person.json<{ secret: string }>('key', 'join', '--server', '--pool', 'gpu')).secret).toBeTruthy();
    expect((await run('key', 'join')).code).toBe(2);
  });
  it('login: a bad key saves nothing', async () => {
    const bad = await person.run(['login', up.line.controlPlane, '--name', 'bad', '--key-file', '-'], {
      input: 'pk_wrong_key_0123456789',
    });
    expect(bad.code).toBe(5);
    expect((await run('context', 'list')).out).not.toContain('bad');
    expect((await run('context', 'use', 'nobody')).code).toBe(3);
  });
  it('audit: every change has its row, and the log is whole', async () => {
    expect((await run('audit', '--limit', '100')).out).toMatch(/version\.publish|publish/);
    expect(await run('audit', '--verify')).toMatchObject({ code: 0, out: expect.stringContaining('whole') });
  });
  it('fleet: servers and routers', async () => {
    expect((await run('fleet', 'servers')).out).toMatch(/local +default +yes/);
    expect((await run('fleet', 'routers')).out).toMatch(/local +yes/);
    expect((await run('fleet', 'forget-router', '00000000-0000-0000-0000-000000000000')).code).toBe(3);
  });
});

describe('what goes wrong', () => {
  it('a corrupt model fails in the words of the model server, and the old version goes on', async () => {
    await write('corrupt.onnx', Buffer.concat([scaleModel(3).subarray(0, 60), Buffer.alloc(40, 255)]));
    const ran = await run('model', 'upload', 'nlp/scale', 'corrupt.onnx', '--publish', '--wait');
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(/nlp\/scale@3.*text\/scale|text\/scale.*nlp\/scale@3|failed on endpoint text\/scale/);
    expect((await run('endpoint', 'infer', 'text/scale', '--json', ones)).out).toContain('[[2,2,2,2]]');
    const shown = await person.json<Endpoint>('endpoint', 'show', 'text/scale');
    expect(shown.deployments.find(({ version }) => version === 3)).toMatchObject({ state: 'failed' });
    await run('model', 'archive', 'nlp/scale@3');
  });
  it.each([
    [['model', 'show', 'nlp/none'], 3, 'nlp/none'],
    [['model', 'publish', 'nlp/scale@99'], 3, '99'],
    [['model', 'publish', 'nlp/scale'], 2, 'which version of nlp/scale'],
    [['model', 'upload', 'nlp/scale', 'missing.onnx'], 3, 'missing.onnx'],
    [['model', 'upload', 'bad name/x', 'one.onnx'], 2, 'bad name/x'],
    [['endpoint', 'add', 'x', '--model', 'nlp/none@1', '--wait=2s'], 7, 'nlp/none'],
    [['endpoint', 'add', 'x y', '--model', 'nlp/scale'], 2, 'name'],
    [['endpoint', 'show', 'none'], 3, 'none'],
    [['endpoint', 'infer', 'none', '--json', '{}'], 3, 'none'],
    [['endpoint', 'infer', 'text/scale', '--json', '{"z": [[1]]}'], 2, 'x'],
    [['endpoint', 'infer', 'text/scale', '--json', '{'], 2, 'JSON'],
    [['endpoint', 'infer', 'text/scale', '99', '--json', ones], 3, '99'],
    [['endpoint', 'infer', 'text/scale'], 2, '--json'],
  ])('%j exits %i and names %s', async (args, code, words) => {
    const ran = await run(...args);
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(words);
  });
  it('nobody there is 6, nobody answering in time is 7', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as { port: number };
    const slow = await person.run([
      'endpoint',
      'infer',
      'x',
      '--json',
      '{}',
      '--timeout',
      '300ms',
      '--router',
      `http://127.0.0.1:${port}`,
    ]);
    expect(slow).toMatchObject({ code: 7, err: expect.stringContaining(`127.0.0.1:${port}`) });
    server.close();
    const gone = await person.run(['model', 'list'], {
      env: { PERCH_URL: `http://127.0.0.1:${port}`, PERCH_API_KEY: 'x' },
    });
    expect(gone).toMatchObject({ code: 6, err: expect.stringContaining('cannot reach') });
  });
  it('waiting has an end, and says what was seen last', async () => {
    await person.json('endpoint', 'add', 'never', '--model', 'nlp/scale', '--tag', 'nobody-has-this');
    const waited = await run('endpoint', 'update', 'never', '--timeout', '4s', '--wait=1s');
    expect(waited.code).toBe(7);
    expect(waited.err).toMatch(/not there after 1 s; last seen: /);
  });
  it('symbolic links and 10,000 files are refused before anything is sent', async () => {
    await mkdir(join(person.folder, 'linked'));
    await symlink('/etc/passwd', join(person.folder, 'linked', 'model.onnx'));
    expect(await run('model', 'upload', 'nlp/linked', 'linked')).toMatchObject({
      code: 2,
      err: expect.stringContaining('symbolic link'),
    });
    await mkdir(join(person.folder, 'many'));
    for (let n = 0; n < 10_000; n += 1) await write(`many/${n}`, '');
    expect(await run('model', 'upload', 'nlp/many', 'many')).toMatchObject({
      code: 2,
      err: expect.stringContaining('at most 2000 files'),
    });
    expect((await run('model', 'show', 'nlp/many')).code).toBe(3);
  });
  it('errors are JSON for programs that asked for it', async () => {
    const { code, err } = await run('model', 'show', 'nlp/none', '-o', 'json');
    expect(code).toBe(3);
    expect(JSON.parse(err).error).toMatchObject({ code: 'not_found' });
  });
});

describe('modules', () => moduleSuite(() => person));
