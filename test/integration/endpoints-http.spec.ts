import {
  type DesiredAnswer,
  type ManifestFile,
  type RoutingTable,
  type RoutingTableAnswer,
  sha256Hex,
  type VersionUpload,
} from '@perch/contracts';
import { DocumentSource } from '@perch/fleet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  routerJoinKey,
  serverJoinKey,
  startTestControlPlane,
  type TestControlPlane,
} from '../support/control-plane.ts';

let plane: TestControlPlane;
beforeAll(async () => {
  plane = await startTestControlPlane();
});
afterAll(() => plane.close());

const spec = (name: string, more: object = {}) => ({ name, model: { project: 'p', name: 'm' }, ...more });
const at = (name: string) => `/api/v1/endpoints/${encodeURIComponent(name)}`;

async function upload(model: string, text: string): Promise<number> {
  const bytes = Buffer.from(text);
  const file: ManifestFile = { path: 'model.onnx', sha256: sha256Hex(bytes), size: bytes.length };
  const { body } = await plane.call<VersionUpload>('POST', `/api/v1/models/${model}/versions`, { files: [file] });
  for (const blob of body.missing) {
    const sent = await fetch(blob.url!, { method: 'PUT', body: bytes, headers: blob.headers });
    expect(sent.status).toBeLessThan(300);
  }
  const { number } = body.version;
  for (const verb of ['complete', 'publish'])
    expect((await plane.call('POST', `/api/v1/models/${model}/versions/${number}/${verb}`, {})).status).toBe(200);
  return number;
}

describe('endpoints over HTTP', () => {
  it('adds, shows, replaces under If-Match, lists, rolls back and removes', async () => {
    const made = await plane.call('POST', '/api/v1/endpoints', spec('text/one'));
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ name: 'text/one', generation: 1, updatedBy: 'bootstrap' });
    const shown = await plane.call('GET', at('text/one'));
    expect(shown.headers.get('etag')).toBe('"1"');
    expect(shown.body.spec.fleet).toEqual({ pool: 'default', replicas: 1, minReplicas: 1 });

    const again = await plane.call('POST', '/api/v1/endpoints', spec('text/one', { fleet: { replicas: 3 } }));
    expect(again.status).toBe(409);
    expect(again.body.details).toMatchObject({ changes: [{ path: 'fleet.replicas', before: 1, after: 3 }] });

    const mine = spec('text/one', { limits: { timeoutMs: 500 } });
    const replaced = await plane.call('PUT', at('text/one'), mine, { headers: { 'if-match': '"1"' } });
    expect(replaced.headers.get('etag')).toBe('"2"');

    const late = await plane.call('PUT', at('text/one'), spec('text/one', { fleet: { replicas: 2 } }), {
      headers: { 'if-match': '"1"' },
    });
    expect(late.status).toBe(412);
    expect(late.body.detail).toContain('endpoint text/one is at generation 2, not 1');
    expect(late.body.details).toMatchObject({
      yours: [{ path: 'fleet.replicas', before: 1, after: 2 }],
      theirs: [{ path: 'limits.timeoutMs', before: 60_000, after: 500 }],
    });
    expect((await plane.call('GET', at('text/one'))).body.generation).toBe(2);

    const back = await plane.call('POST', `${at('text/one')}/rollback`, { generation: 1, reason: 'slow' });
    expect(back.body).toMatchObject({ generation: 3, spec: { limits: { timeoutMs: 60_000 } } });
    const history = await plane.call('GET', `${at('text/one')}/generations`);
    expect(
      history.body.items.map((row: { generation: number; reason: string }) => [row.generation, row.reason]),
    ).toEqual([
      [3, 'slow'],
      [2, ''],
      [1, ''],
    ]);
    expect((await plane.call('POST', `${at('text/one')}/rollback`, { generation: 9 })).status).toBe(404);
    const stale = await plane.call('DELETE', at('text/one'), undefined, { headers: { 'if-match': '"1"' } });
    expect(stale.status).toBe(412);
    expect((await plane.call('DELETE', at('text/one'))).status).toBe(204);
    expect((await plane.call('GET', at('text/one'))).status).toBe(404);
    expect((await plane.call('PUT', at('text/one'), mine)).status).toBe(404);
  });

  it('two writers at once: one generation each, or one is told', async () => {
    await plane.call('POST', '/api/v1/endpoints', spec('text/race'));
    const answers = await Promise.all(
      [2, 3, 4, 5].map((replicas) =>
        plane.call('PUT', at('text/race'), spec('text/race', { fleet: { replicas } }), {
          headers: { 'if-match': '"1"' },
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
    expect((await plane.call('GET', at('text/race'))).body.generation).toBe(2);
  });

  it('apply says what changes and what follows; dryRun changes nothing', async () => {
    const dry = await plane.call('POST', '/api/v1/apply?dryRun=true', spec('text/apply'));
    expect(dry.body).toMatchObject({ outcome: 'would_create', generation: 0 });
    expect(dry.body.effect).toEqual(['no version of p/m matches: waits for one']);
    expect((await plane.call('GET', at('text/apply'))).status).toBe(404);
    expect((await plane.call('POST', '/api/v1/apply', spec('text/apply'))).body.outcome).toBe('created');
    expect((await plane.call('POST', '/api/v1/apply', spec('text/apply'))).body).toMatchObject({
      outcome: 'unchanged',
      generation: 1,
      changes: [],
      effect: [],
    });
    const next = spec('text/apply', { access: { inference: 'public' } });
    expect((await plane.call('POST', '/api/v1/apply?dryRun=true', next)).body).toMatchObject({
      outcome: 'would_update',
      changes: [{ path: 'access.inference', before: 'key', after: 'public' }],
      effect: ['no version of p/m matches: waits for one', 'routers apply the new limits and access within seconds'],
    });
    expect((await plane.call('POST', '/api/v1/apply', next)).body).toMatchObject({ outcome: 'updated', generation: 2 });
  });

  it.each<[string, unknown, number, string, string]>([
    [
      'a name that hides a version',
      spec('text/apply/7'),
      409,
      'conflict',
      'would hide version 7 of endpoint text/apply',
    ],
    ['a field nobody knows', { ...spec('x'), colour: 'red' }, 400, 'invalid', 'colour'],
    ['a bad name', spec('-x'), 400, 'invalid', 'name'],
    ['no model', { name: 'x' }, 400, 'invalid', 'model'],
    [
      'progressive traffic of an external Triton',
      { name: 'x', model: { source: 'box/m' }, traffic: { mode: 'progressive' } },
      501,
      'not_available_yet',
      'traffic.mode',
    ],
    ['a pipeline', { kind: 'Pipeline', name: 'x', nodes: {}, output: 1 }, 400, 'invalid', 'perch pipeline add'],
    [
      'a version and a rule',
      spec('x', { model: { project: 'p', name: 'm', version: 1, maxVersions: 2 } }),
      400,
      'invalid',
      'model.version',
    ],
    [
      'a configuration text that Triton cannot read',
      spec('x', { engine: { config: 'max_batch_size: 4\nmax_batch_sizes: 4' } }),
      400,
      'invalid',
      'endpoint x: engine.config, ',
    ],
    [
      'a version policy',
      spec('x', { engine: { config: 'version_policy { all { } }' } }),
      400,
      'invalid',
      'engine.config: version_policy: say how many versions are served with model.maxVersions',
    ],
  ])('%s is refused and changes nothing', async (_what, body, status, code, words) => {
    const before = (await plane.call('GET', '/api/v1/endpoints')).body.items.length;
    const answer = await plane.call('POST', '/api/v1/endpoints', body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body.detail).toContain(words);
    expect((await plane.call('GET', '/api/v1/endpoints')).body.items).toHaveLength(before);
  });

  it('a page ends where it says', async () => {
    for (const n of [1, 2, 3]) await plane.call('POST', '/api/v1/endpoints', spec(`page/e${n}`));
    const names: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await plane.call('GET', `/api/v1/endpoints?limit=2${cursor && `&cursor=${cursor}`}`);
      names.push(...body.items.map(({ name }: { name: string }) => name));
      if (body.nextCursor === null) break;
      cursor = body.nextCursor;
    }
    expect(names).toEqual([...names].sort());
    expect(names.filter((name) => name.startsWith('page/'))).toEqual(['page/e1', 'page/e2', 'page/e3']);
  });

  it('shows and releases what rollouts refused, and lets held updates go on', async () => {
    expect(
      (await plane.call('POST', '/api/v1/endpoints', spec('text/canary', { traffic: { mode: 'progressive' } }))).status,
    ).toBe(201);
    const path = `${at('text/canary')}/quarantine`;
    expect((await plane.call('GET', path)).body).toEqual({ items: [], nextCursor: null });
    expect((await plane.call('GET', `${at('text/nobody')}/quarantine`)).status).toBe(404);
    const digest = sha256Hex('a deployment');
    await plane.database.query(
      `insert into quarantine (endpoint, digest, source_digest, version, reason) values ('text/canary', $1, '', 4, 'it erred'), ('text/canary', $2, '', 3, 'slow')`,
      [digest, `${digest.slice(0, 10)}${'0'.repeat(54)}`],
    );
    expect((await plane.call('GET', path)).body.items).toHaveLength(2);
    for (const [which, status] of [
      ['zz', 400],
      ['0'.repeat(12), 404],
      [digest.slice(0, 9), 409],
    ] as const)
      expect((await plane.call('DELETE', `${path}/${which}`)).status).toBe(status);
    const released = await plane.call('DELETE', `${path}/${digest.slice(0, 12)}`);
    expect(released).toMatchObject({ status: 200, body: { version: 4, digest, reason: 'it erred', rollout: null } });
    expect((await plane.call('DELETE', `${path}/${digest}`)).status).toBe(404);
    expect((await plane.call('POST', `${at('text/canary')}/resume`, { reason: 'fixed' })).status).toBe(200); // nobody held them
    expect((await plane.call('POST', `${at('text/nobody')}/resume`, {})).status).toBe(404);
    const audit = await plane.call('GET', '/api/v1/audit?subject=text%2Fcanary');
    expect(audit.body.items.map((row: { action: string }) => row.action)).toContain('quarantine.release');
  });
});

const join = async (body: object, key: string) =>
  plane.call('POST', '/internal/v1/enrol', { name: 'n', previousLineage: null, ...body }, { key });
const aServer = { kind: 'server', http: '127.0.0.1:1', grpc: '127.0.0.1:2' };

describe('agents and routers over HTTP', () => {
  it('says who may not', async () => {
    expect((await join(aServer, 'nonsense')).status).toBe(401);
    expect((await join(aServer, routerJoinKey)).status).toBe(403);
    expect((await plane.call('GET', '/internal/v1/routing-table', undefined, { key: '' })).status).toBe(401);
    expect((await plane.call('GET', '/internal/v1/routing-table', undefined, { key: 'pt_x' })).status).toBe(401);
    const { body: a } = await join({ ...aServer, name: 'a', http: 'a:1' }, serverJoinKey);
    const { body: b } = await join({ ...aServer, name: 'b', http: 'b:1' }, serverJoinKey);
    expect((await plane.call('GET', `/internal/v1/servers/${b.id}/desired`, undefined, { key: a.token })).status).toBe(
      403,
    );
    expect(
      (await plane.call('PUT', `/internal/v1/servers/${b.id}/observed`, { bootId: 'x', hash: 'y' }, { key: a.token }))
        .status,
    ).toBe(403);
    expect((await plane.call('GET', '/internal/v1/routing-table', undefined, { key: a.token })).status).toBe(401);
    const foreign = await plane.call('POST', '/internal/v1/blobs/urls', { hashes: ['a'.repeat(64)] }, { key: a.token });
    expect(foreign.status).toBe(403);
    for (const query of ['wait=99', 'after=-1', 'lineage=x', 'wait=soon'])
      expect(
        (await plane.call('GET', `/internal/v1/servers/${a.id}/desired?${query}`, undefined, { key: a.token })).status,
      ).toBe(400);
  });

  it('publish → document, ready → table, without asking again', async () => {
    const { body: server } = await join({ ...aServer, name: 'fast', http: 'fast:1' }, serverJoinKey);
    const { body: router } = await join({ kind: 'router', name: 'r' }, routerJoinKey);
    const other = await plane.call('GET', '/api/v1/servers');
    expect(other.body.items.map(({ name }: { name: string }) => name)).toContain('fast');

    const desired = async (query: string) =>
      plane.call<DesiredAnswer>('GET', `/internal/v1/servers/${server.id}/desired?${query}`, undefined, {
        key: server.token,
      });
    const table = async (query: string) =>
      plane.call<RoutingTableAnswer>('GET', `/internal/v1/routing-table?${query}`, undefined, { key: router.token });
    const whole = (await desired('wait=0')).body as DesiredAnswer & { kind: 'whole' };
    const first = (await table('wait=0')).body as RoutingTableAnswer & { kind: 'whole' };
    expect(first.document.confirmed).toBe(true);
    const { lineage } = whole.document;

    const report = (revision: number, models: object) => {
      const triton = { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 };
      const disk = { freeBytes: 1, cacheBytes: 1 };
      const observed = { lineage, revision, heldRemovals: [], triton, models, disk };
      const body = { bootId: 'b', hash: `${revision}`, observed };
      return plane.call('PUT', `/internal/v1/servers/${server.id}/observed`, body, { key: server.token });
    };
    await report(whole.document.revision, {});

    await plane.database.query(`update servers set presence = 'lost' where name <> 'fast'`);
    await plane.call('POST', '/api/v1/endpoints', { name: 'quick', model: { project: 'p', name: 'quick' } });
    const polling = desired(`after=${whole.document.revision}&lineage=${lineage}&wait=20`);
    await upload('p/quick', 'weights');
    const started = performance.now();
    const patch = (await polling).body as DesiredAnswer & { kind: 'patch' };
    const documentMs = performance.now() - started;
    expect(patch.kind).toBe('patch');
    expect((await desired('wait=0')).headers.get('etag')).toBe(`"${lineage}.${patch.revision}"`);
    const [name, model] = Object.entries(patch.patch['models']!)[0]! as [string, { files: { sha256: string }[] }];
    expect(name).toMatch(/^quick-v1-[0-9a-f]{12}$/);

    const { body: urls } = await plane.call(
      'POST',
      '/internal/v1/blobs/urls',
      { hashes: [model.files[0]!.sha256] },
      { key: server.token },
    );
    const bytes = await (await fetch(urls.urls[model.files[0]!.sha256].url)).text();
    expect(bytes).toBe('weights');

    // The endpoint stands in the table before anything serves it.
    await expect
      .poll(async () => ((await table('wait=0')).body as { document: RoutingTable }).document.endpoints, {
        timeout: 10_000,
      })
      .toHaveProperty('quick');
    const now = (await table('wait=0')).body as RoutingTableAnswer & { kind: 'whole' };
    const waiting = table(`after=${now.document.revision}&lineage=${lineage}&wait=20`);
    const ready = performance.now();
    const since = new Date().toISOString();
    const loaded = { state: 'ready', reason: null, since, inputs: [], outputs: [], maxBatchSize: 0 };
    const reported = await report(patch.revision, { [name]: loaded });
    expect(reported.body).toEqual({ needReport: false });
    const served = (await waiting).body as RoutingTableAnswer & { kind: 'patch' };
    const tableMs = performance.now() - ready;
    expect(served.patch['endpoints']!['quick']).toMatchObject({
      targets: [{ version: 1, tritonModel: name, servers: [server.id] }],
    });
    expect(served.patch['servers'] ?? now.document.servers).toHaveProperty(server.id);
    console.info(`publish → document ${documentMs.toFixed(0)} ms, ready → table ${tableMs.toFixed(0)} ms`);

    const nothing = await table(`after=${served.revision}&lineage=${lineage}&wait=0`);
    expect(nothing.status).toBe(304);
    expect((await plane.call('GET', at('quick'))).body.status).toMatchObject({ phase: 'ready', servingVersions: [1] });
  });

  it('a long poll ends when the control plane stops', async () => {
    const { body: router } = await join({ kind: 'router', name: 'r9' }, routerJoinKey);
    const first = (await plane.call('GET', '/internal/v1/routing-table', undefined, { key: router.token })).body;
    const { revision, lineage } = first.document;
    const polling = plane.call(
      'GET',
      `/internal/v1/routing-table?after=${revision}&lineage=${lineage}&wait=25`,
      undefined,
      {
        key: router.token,
      },
    );
    await expect.poll(() => plane.app.get(DocumentSource, { strict: false }).waitingFor('routing-table')).toBe(1);
    const started = performance.now();
    await plane.app.close();
    expect((await polling).status).toBe(304);
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
