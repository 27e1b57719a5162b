import { type Diagnosis, type EndpointLog, type Finding, type GarbageReport, sha256Hex } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  routerJoinKey,
  serverJoinKey,
  startTestControlPlane,
  type TestControlPlane,
} from '../support/control-plane.ts';

let plane: TestControlPlane;
let serverKey = '';
let serverId = '';
let routerKey = '';
let routerId = '';
beforeAll(async () => {
  plane = await startTestControlPlane();
  const enrol = async (key: string, body: object) =>
    (await plane.call('POST', '/internal/v1/enrol', body, { key })).body as { id: string; token: string };
  const server = await enrol(serverJoinKey, { kind: 'server', name: 's1', http: 's1:8000', grpc: 's1:8001' });
  [serverId, serverKey] = [server.id, server.token];
  const router = await enrol(routerJoinKey, { kind: 'router', name: 'r1' });
  [routerId, routerKey] = [router.id, router.token];
  await uploadVersion('nlp', 'a', 'one');
});
afterAll(() => plane?.close());

async function uploadVersion(project: string, name: string, text: string): Promise<number> {
  const file = { path: 'model.onnx', sha256: sha256Hex(text), size: text.length };
  const { body } = await plane.call('POST', `/api/v1/models/${project}/${name}/versions`, {
    files: [file],
    framework: 'custom',
  });
  for (const { url, headers } of body.missing) await fetch(url, { method: 'PUT', headers, body: text });
  const at = `/api/v1/models/${project}/${name}/versions/${body.version.number}`;
  expect((await plane.call('POST', `${at}/complete`)).status).toBe(200);
  expect((await plane.call('POST', `${at}/publish`)).status).toBe(200);
  return body.version.number;
}

const beat = (models: object = {}, more: object = {}) =>
  plane.call(
    'PUT',
    `/internal/v1/servers/${serverId}/observed`,
    {
      bootId: 'b',
      hash: sha256Hex(JSON.stringify([models, more])),
      observed: {
        lineage: null,
        revision: 2_000_000_000,
        heldRemovals: [],
        triton: { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 },
        models,
        disk: { freeBytes: 50e9, cacheBytes: 0 },
        ...more,
      },
    },
    { key: serverKey },
  );
const report = (stats?: object) =>
  plane.call(
    'PUT',
    `/internal/v1/routers/${routerId}/report`,
    {
      bootId: 'b',
      hash: 'h',
      report: { lineage: null, revision: 0, inFlight: {}, problems: {}, held: false },
      ...(stats ? { stats } : {}),
    },
    { key: routerKey },
  );
async function until<T>(look: () => Promise<T>, done: (value: T) => boolean): Promise<T> {
  for (const deadline = Date.now() + 20_000; ; ) {
    const value = await look();
    if (done(value) || Date.now() > deadline) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const endpoint = () => plane.call('GET', '/api/v1/endpoints/text%2Fa');

describe('truth over HTTP', () => {
  it('answers why, stats and logs of an endpoint, and 404 for a name never used', async () => {
    await beat();
    const spec = { name: 'text/a', model: { project: 'nlp', name: 'a' }, engine: { platform: 'custom_backend' } };
    expect((await plane.call('POST', '/api/v1/endpoints', spec)).status).toBe(201);
    await until(endpoint, ({ body }) => body.deployments.length > 0);
    const why = await plane.call('GET', '/api/v1/endpoints/text%2Fa/why?version=1');
    expect(why.body).toMatchObject({ endpoint: 'text/a', version: 1, served: false });
    expect(why.body.chain[0]).toMatchObject({ step: 'endpoint', state: 'ok' });
    expect((await plane.call('GET', '/api/v1/endpoints/nobody/why')).status).toBe(404);
    expect((await plane.call('GET', '/api/v1/endpoints/text%2Fa/why?version=x')).status).toBe(400);

    const latency = new Array(27).fill(0);
    await report({ 'text/a': { 1: { requests: 3, errors: 1, retries: 0, latency } } });
    const stats = await plane.call('GET', '/api/v1/endpoints/text%2Fa/stats');
    expect(stats.body.counts).toMatchObject([{ version: 1, routerName: 'r1', requests: 3, errors: 1 }]);
    expect((await plane.call('GET', '/api/v1/endpoints/nobody/stats')).status).toBe(404);

    const name = (await endpoint()).body.deployments[0].tritonModel as string;
    await beat(
      {},
      {
        supervision: {
          state: 'running',
          restarts: 1,
          lastExit: 'exit code 1',
          console: ['hello', `failed to load '${name}'`],
        },
      },
    );
    const log = (await plane.call<EndpointLog>('GET', '/api/v1/endpoints/text%2Fa/logs')).body;
    expect(log.items[0]).toMatchObject({ source: 'perch', message: 'created as generation 1' });
    expect(log.items.map(({ action }) => action)).toContain('deployment.create');
    expect(log.items.slice(-2).map(({ message }) => message)).toEqual([
      'its model server ended: exit code 1',
      `failed to load '${name}'`,
    ]);
    const ids = log.items.filter(({ at }) => at !== null).map(({ at }) => at!);
    expect(ids).toEqual([...ids].sort());
    const next = (await plane.call<EndpointLog>('GET', `/api/v1/endpoints/text%2Fa/logs?after=${log.next}`)).body;
    expect(next.items.filter(({ source }) => source === 'perch')).toEqual([]);
    const late = await plane.call<EndpointLog>(
      'GET',
      `/api/v1/endpoints/text%2Fa/logs?since=${new Date().toISOString()}`,
    );
    expect(late.body.items.filter(({ source }) => source === 'perch')).toEqual([]);
  });

  it('refuses to delete what an endpoint uses, also when that is stopped', async () => {
    const refused = await plane.call('DELETE', '/api/v1/models/nlp/a/versions/1');
    expect(refused).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('endpoint text/a (version 1)') },
    });
    expect((await plane.call('POST', '/api/v1/endpoints/text%2Fa/stop', { reason: 'night' })).body.spec.stopped).toBe(
      true,
    );
    const gone = await until(endpoint, ({ body }) => body.deployments.length === 0);
    expect(gone.body.status).toMatchObject({ reason: 'stopped' });
    expect((await plane.call('DELETE', '/api/v1/models/nlp/a')).status).toBe(409);
    await uploadVersion('nlp', 'a', 'two');
    const older = await plane.call('DELETE', '/api/v1/models/nlp/a/versions/1');
    expect(older).toMatchObject({ status: 200, body: { versions: [1] } }); // the rule would take version 2 now
    expect((await plane.call('DELETE', '/api/v1/models/nlp/a/versions/2')).status).toBe(409);
    expect((await plane.call('POST', '/api/v1/endpoints/text%2Fa/start', {})).body.spec.stopped).toBe(false);
    const back = await until(endpoint, ({ body }) => body.deployments.length > 0);
    expect(back.body.deployments).toMatchObject([{ version: 2 }]);
  });

  it('collects garbage after listing it, with a row in the audit log', async () => {
    const days = `interval '2 days'`;
    const grow = () =>
      plane.database.query(
        `update versions set deleted_at = deleted_at - ${days} where deleted_at is not null;
         update deployments set since = since - ${days} where state = 'retired';
         update triton_models set described_at = described_at - ${days};
         update blobs set created_at = created_at - ${days}`,
      );
    const of = ({ found }: GarbageReport) =>
      Object.fromEntries(
        found.filter(({ count }) => count > 0).map(({ kind, count, failed }) => [kind, [count, failed]]),
      );
    const dry = await until(
      // nothing of version 1 is garbage before its server has let go of it
      async () => {
        await grow();
        return (await plane.call<GarbageReport>('POST', '/api/v1/gc', { dryRun: true })).body;
      },
      (report) => of(report).versions !== undefined,
    );
    expect(of(dry)).toEqual({
      deployments: [1, null],
      'triton models': [1, null],
      versions: [1, null],
      blobs: [1, null],
    });
    const done = (await plane.call<GarbageReport>('POST', '/api/v1/gc', {})).body;
    expect(of(done)).toEqual(of(dry));
    expect(of((await plane.call<GarbageReport>('POST', '/api/v1/gc', {})).body)).toEqual({});
    const audit = await plane.call('GET', '/api/v1/audit?subject=installation');
    expect(audit.body.items.map((row: { action: string }) => row.action)).toContain('gc.run');
    expect((await plane.call('POST', '/api/v1/gc', { olderThanMs: 5 })).status).toBe(400);
    // what is there is still served as before
    expect((await endpoint()).body.deployments).toMatchObject([{ version: 2 }]);
  });

  it('examines the installation', async () => {
    await beat({}, { disk: { freeBytes: 1e9, cacheBytes: 0 } });
    await report();
    const { body } = await plane.call<Diagnosis>('GET', '/api/v1/doctor');
    const line = (what: string): Finding | undefined => body.findings.find((one) => one.what === what);
    expect(line('database')).toMatchObject({
      severity: 'ok',
      message: expect.stringMatching(/PostgreSQL \d+\.\d+, schema current/),
    });
    expect(line('clock')).toMatchObject({ severity: 'ok' });
    expect(line('store')).toMatchObject({
      severity: 'ok',
      message: expect.stringContaining('writes, reads and deletes'),
    });
    expect(line('installation')).toMatchObject({ severity: 'ok' });
    expect(line('server s1')).toMatchObject({
      severity: 'warning',
      message: expect.stringContaining('1.0 GB of disk free'),
    });
    expect(line('router r1')).toBeDefined();
    const viewer = (await plane.call('POST', '/api/v1/keys', { name: 'v', role: 'viewer' })).body as { secret: string };
    expect((await plane.call('GET', '/api/v1/doctor', undefined, { key: viewer.secret })).status).toBe(403);
    expect((await plane.call('POST', '/api/v1/gc', {}, { key: viewer.secret })).status).toBe(403);
    let probes = 0;
    const { ARTIFACT_STORE } = await import('@perch/registry');
    for await (const { key } of plane.app.get(ARTIFACT_STORE).list('probes')) probes += key ? 1 : 0;
    expect(probes).toBe(0);
  });
});
