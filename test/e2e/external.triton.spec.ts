import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EndpointSpecInput, Problem } from '@perch/contracts';
import { createTritonControl, type TritonControl } from '@perch/triton/control';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { adminKey, routerJoinKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { scaleModel } from '../support/onnx.ts';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, putModel, startTriton } from '../support/real-triton.ts';
import { Program } from '../support/stack.ts';

const rows = { x: [[1, 2, 3, 4]] };
const tensors =
  'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }';
const config = `platform: "onnxruntime_onnx" max_batch_size: 8 version_policy { all {} }
instance_group { count: 1 kind: KIND_CPU } parameters { key: "intra_op_thread_count" value { string_value: "1" } } ${tensors}`;
const factors = (...all: number[]) => Object.fromEntries(all.map((factor, index) => [index + 1, scaleModel(factor)]));
const secret = '--grpc-restricted-protocol=model-repository,statistics:owner=sesame';

/** So long a busy machine may take until a restarted Triton holds its models again. */
const patienceMs = 90_000;

const until = async (holds: () => Promise<boolean>, what: string, limitMs = 60_000): Promise<void> => {
  const deadline = Date.now() + limitMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`never came true: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
};

describe.skipIf(missingReason('triton'))('Tritons without an agent', () => {
  let folder: string;
  let plane: TestControlPlane;
  let router: Program;
  let admin: Admin;
  const servers: ModelServer[] = [];
  const controls: TritonControl[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-external-'));
    plane = await startTestControlPlane();
    router = new Program(
      'router',
      'router',
      {
        PERCH_LISTEN: '127.0.0.1:0',
        PERCH_CONTROL_URL: plane.address,
        PERCH_JOIN_KEY: routerJoinKey,
        PERCH_DATA_DIR: join(folder, 'router'),
        PERCH_NAME: 'router-a',
      },
      join(folder, 'router.log'),
    );
    await router.start();
    admin = new Admin({ adminKey, controlPlane: plane, router, logs: () => router.tail() });
  });
  afterAll(async () => {
    await router?.stop();
    await plane?.close();
    await rm(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const control of controls.splice(0)) control.close();
    await Promise.all(servers.splice(0).map((server) => server.remove()));
  });

  const start = async (extra: string[]) => {
    const server = await startTriton({ extra });
    servers.push(server);
    const control = createTritonControl({ grpc: server.grpc, timeoutMs: 20_000, headers: { owner: 'sesame' } });
    controls.push(control);
    return { server, control };
  };
  /** The owner's own model, loaded by the owner's own doing. */
  const own = async ({ server, control }: Awaited<ReturnType<typeof start>>, name: string, ...all: number[]) => {
    await putModel(server.repository, name, { config, versions: factors(...all) });
    await control.load(name, { timeoutMs: 30_000 });
  };
  const register = (name: string, { http, grpc }: ModelServer, more: object = {}) =>
    admin.must('POST', '/servers', { name, url: `http://${http}`, grpc, ...more });
  const add = (name: string, spec: Partial<EndpointSpecInput>) =>
    admin.must('POST', '/endpoints', { name, access: { inference: 'public' }, ...spec });
  const seen = async (endpoint: string, count = 40): Promise<string[]> => {
    const answers = await Promise.all(
      Array.from({ length: count }, () =>
        admin.serve<{ y: number[][] }>(endpoint, rows, { 'x-request-timeout-ms': '3000' }),
      ),
    );
    return [
      ...new Set(
        answers.map(({ status, headers, body }) => `${status}: ${headers.get('x-perch-version')} ${body.y?.[0]?.[0]}`),
      ),
    ].sort();
  };
  const untilSeen = async (endpoint: string, wanted: string[]) => {
    let last: string[] = [];
    const same = async () => {
      last = await seen(endpoint);
      return JSON.stringify(last) === JSON.stringify(wanted);
    };
    await until(same, `${endpoint}: ${wanted}`).catch(async (error) => {
      const { status, deployments } = await admin.endpoint(endpoint);
      throw new Error(
        `${error.message}; seen ${last}; ${JSON.stringify([status, deployments, await admin.servers()])}`,
      );
    });
  };
  const remove = async (endpoint: string) => {
    await admin.must('DELETE', `/endpoints/${endpoint}`);
  };
  const unregistered = async (name: string) => {
    let last: { status: number } = { status: 0 };
    await until(async () => {
      last = await admin.call('DELETE', `/servers/${name}`);
      return last.status === 204;
    }, `${name} is unregistered (${last.status})`);
  };

  it('adopted: versions are found, weighed, balanced and followed, and nothing is loaded or unloaded', async () => {
    const [a, b] = [await start(['--load-model=*']), await start(['--load-model=*'])];
    for (const one of [a, b]) await own(one, 'resnet', 2, 3);
    await register('box-a', a.server, { pool: 'boxes' });
    await add('pictures', {
      model: { source: 'box-a/resnet', maxVersions: 2 } as EndpointSpecInput['model'],
      traffic: { mode: 'weighted', weights: { '1': 50, '2': 50 } },
    });
    await untilSeen('pictures', ['200: 1 2', '200: 2 3']);
    const shown = await admin.endpoint('pictures');
    expect(shown.spec.model).toMatchObject({ project: 'external', name: 'resnet' });
    expect(shown.status.servingVersions).toEqual([2, 1]);

    const limits = { timeoutMs: 3_000 };
    await add('all', { model: { source: 'boxes/resnet' } as EndpointSpecInput['model'], limits });
    await untilSeen('all', ['200: 2 3']);
    await register('box-b', b.server, { pool: 'boxes' });
    const counts = async () =>
      Promise.all([a, b].map(async ({ control }) => (await control.statistics('resnet'))[1]!.success.count));
    const before = await counts();
    await until(async () => {
      await seen('all');
      const [first, second] = await counts();
      return first! > before[0]! && second! > before[1]!;
    }, 'both servers get requests');

    for (const one of [a, b]) await own(one, 'resnet', 2, 3, 5);
    await untilSeen('all', ['200: 3 5']);
    await add('two', {
      model: { source: 'boxes/resnet', select: { versions: [2] } } as EndpointSpecInput['model'],
      limits,
    });
    await untilSeen('two', ['200: 2 3']);

    // The newest version is found on the other server a look later.
    await expect
      .poll(
        async () => {
          const { status, body } = await admin.call<Problem>('DELETE', '/servers/box-b');
          return [status, body.detail];
        },
        { timeout: 20_000 },
      )
      .toEqual([409, expect.stringContaining('in use by all, two')]);
    await admin.must('POST', '/servers/box-b/drain', { reason: 'test' });
    await unregistered('box-b');
    await untilSeen('all', ['200: 3 5']);

    for (const name of ['pictures', 'all', 'two']) await remove(name);
    await unregistered('box-a');
    for (const { control } of [a, b])
      expect((await control.index()).map(({ name, version, state }) => `${name} ${version} ${state}`).sort()).toEqual([
        'resnet 1 READY',
        'resnet 2 READY',
        'resnet 3 READY',
      ]);
  });

  it('adopted: requests wait while the only one restarts, and an unanswering one is told with its reason', async () => {
    const one = await start(['--load-model=*']);
    await own(one, 'resnet', 2);
    await register('solo', one.server);
    await add('solo', {
      model: { source: 'solo/resnet' } as EndpointSpecInput['model'],
      limits: { timeoutMs: 30_000 },
    });
    await untilSeen('solo', ['200: 1 2']);
    await one.server.stop('SIGKILL');
    const waiting = Promise.all(Array.from({ length: 10 }, () => admin.serve('solo', rows)));
    const told = async () => (await admin.servers()).find(({ name }) => name === 'solo')!;
    await until(async () => (await told()).external?.problem !== null, 'the problem is told');
    await one.server.restart();
    expect((await waiting).map(({ status }) => status)).toEqual(Array(10).fill(200));
    await until(async () => (await told()).external?.problem === null, 'the problem is over');
    await remove('solo');
    await unregistered('solo');
  });

  it('explicit: small models are loaded, updated and unloaded; what the owner holds stays; after a restart it is loaded again', async () => {
    const one = await start([secret, '--load-model=*']);
    await own(one, 'theirs', 9);
    await register('own', one.server, { pool: 'own', mode: 'explicit' });
    const server = async () => (await admin.servers()).find(({ name }) => name === 'own')!;
    await until(async () => /restricted/.test((await server()).external?.problem ?? ''), 'the header is asked for');
    await register('own', one.server, { pool: 'own', mode: 'explicit', headers: { owner: 'sesame' } });
    const model = { project: 'nlp', name: 'scale' };
    await admin.upload('nlp/scale', { 'model.onnx': scaleModel(2) });
    await add('scale', { model, fleet: { pool: 'own' }, limits: { timeoutMs: patienceMs } });
    await untilSeen('scale', ['200: 1 2']);

    let running = true;
    const failures: string[] = [];
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (running) {
          const startedAt = Date.now();
          const told = await admin.serve('scale', rows, {}, patienceMs + 5_000).then(
            ({ status, body }) => (status === 200 ? undefined : `${status} ${JSON.stringify(body)}`),
            (error: Error) => `${error.message} (${String(error.cause)})`,
          );
          if (told) failures.push(`${new Date(startedAt).toISOString()} +${Date.now() - startedAt} ms: ${told}`);
        }
      }),
    );
    for (const version of [2, 3, 4]) {
      await admin.upload('nlp/scale', { 'model.onnx': scaleModel(version + 1) });
      await admin.untilServed('scale', version, rows);
    }
    const loaded = async () =>
      (await one.control.statistics()).map(({ name }) => name.replace(/-[0-9a-f]{12}$/, '')).sort();
    await until(async () => JSON.stringify(await loaded()) === '["scale-v4","theirs"]', 'old versions are unloaded');
    await one.server.restart();
    const restartedAt = Date.now();
    await untilSeen('scale', ['200: 4 5']);
    running = false;
    await load;
    console.log(`explicit: served again ${Date.now() - restartedAt} ms after the restart of the external Triton`);
    expect(failures, failures.length > 0 ? await admin.stack.logs() : '').toEqual([]);

    await add('theirs', { model: { source: 'own/theirs' } as EndpointSpecInput['model'] });
    await untilSeen('theirs', ['200: 1 9']);
    await admin.upload('nlp/broken', { 'model.onnx': Buffer.from('no model') });
    await add('broken', {
      model: { project: 'nlp', name: 'broken' },
      fleet: { pool: 'own' },
      engine: {
        platform: 'onnxruntime_onnx',
        inputs: [{ name: 'x', type: 'FP32', dims: [4] }],
        outputs: [{ name: 'y', type: 'FP32', dims: [4] }],
      },
    });
    await until(
      async () => /load failed|failed to load/.test((await admin.endpoint('broken')).status.message),
      'told in Triton’s words',
    );
    await remove('broken');
    await remove('scale');
    await until(async () => JSON.stringify(await loaded()) === '["theirs"]', 'ours are unloaded, theirs stay');
    await remove('theirs');
    await unregistered('own');
  });
});
