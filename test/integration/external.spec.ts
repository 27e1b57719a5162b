import { sha256Hex } from '@perch/contracts';
import { EndpointService, FanOutReconcile } from '@perch/endpoints';
import { DrainService, ExternalService, Installation, ServerService } from '@perch/fleet';
import { WorkStore } from '@perch/platform/database';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeRouter, FleetWorld, operator, ruleSpec, sweep } from '../support/fleet.ts';
import { ExternalStand, FakeExternal } from './external-stand.ts';

let world: FleetWorld;
let stand: ExternalStand;
let router: FakeRouter;
const box = { pool: 'default', mode: 'adopt' as const, labels: {}, headers: {} };
const wish = (name: string, fields: object = {}) => ({
  ...box,
  name,
  url: `http://${name}:8000`,
  grpc: `${name}:8001`,
  ...fields,
});
const register = async (name: string, fields: object = {}): Promise<FakeExternal> => {
  const id = await world.get(ExternalService).register(operator, wish(name, fields));
  const triton = stand.tritons.get(id) ?? new FakeExternal();
  stand.tritons.set(id, triton);
  return triton;
};
const idOf = (triton: FakeExternal) => [...stand.tritons].find(([, one]) => one === triton)![0];
const unregister = async (triton: FakeExternal, force = false) => {
  const id = idOf(triton);
  await world.get(ExternalService).unregister(operator, id, force);
  stand.tritons.delete(id);
};
/** What the loops `external` and `source` do, and everything that follows from it. */
const converge = async (routers: FakeRouter[] = [router]) => {
  for (let turn = 0; turn < 3; turn += 1) {
    await stand.look();
    for (const claim of await world.get(WorkStore).claim('source', 50, 5_000)) {
      await world.get(FanOutReconcile).reconcileSource(claim.key);
      await world.get(WorkStore).finish(claim, null);
    }
    await world.converge([], routers);
  }
};
const source = (name: string, from: string, model: object = {}) =>
  world.apply({ name, model: { source: from, ...model } as never, limits: { timeoutMs: 1 } });
const targets = (endpoint: string) =>
  (router.table?.endpoints[endpoint]?.targets ?? []).map(
    ({ version, tritonModel, tritonVersion, servers }) =>
      `${version}: ${tritonModel} ${tritonVersion} on ${servers.length}`,
  );
const held = (triton: FakeExternal) =>
  [...triton.inline.keys()].map((name) => name.replace(/-[0-9a-f]{12}$/, '')).sort();
/** Files of a version whose bytes the store has. */
const files = (text: string, size = text.length) => {
  stand.bytes.set(sha256Hex(text), Buffer.from(text));
  return [{ path: 'model.onnx', sha256: sha256Hex(text), size }];
};

beforeEach(async () => {
  world = await FleetWorld.start();
  stand = new ExternalStand(world);
  router = await world.router('r1');
});
afterEach(() => world.close());

describe('registering', () => {
  it('names are one server’s alone; an agent’s server is not ours to unregister', async () => {
    const agent = await world.agent('agent-1', 'gpu');
    await expect(register('agent-1')).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('has an agent'),
    });
    await expect(register('gpu')).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('name of a pool'),
    });
    await expect(world.get(ExternalService).unregister(operator, agent.id, false)).rejects.toMatchObject({
      code: 'conflict',
    });
    await expect(world.get(ExternalService).unregister(operator, 'nobody', false)).rejects.toMatchObject({
      code: 'not_found',
    });
    const first = await register('box');
    expect(await register('box', { grpc: 'elsewhere:1' })).toBe(first);
    const [shown] = (await world.get(ServerService).list()).filter(({ external }) => external);
    expect(shown).toMatchObject({ name: 'box', grpc: 'elsewhere:1', http: 'box:8000', live: false });
    expect(JSON.stringify(shown)).not.toContain('headers');
  });

  it('an agent that enrols under its name is another server', async () => {
    const triton = await register('box');
    const agent = await world.agent('box');
    expect(agent.id).not.toBe(idOf(triton));
    expect((await world.get(ServerService).list()).length).toBe(2);
  });
});

describe('a Triton that is adopted', () => {
  let a: FakeExternal;
  beforeEach(async () => {
    a = await register('box', { pool: 'boxes' });
    a.own.set('resnet', { '1': 'READY', '2': 'READY' });
  });

  it('serves what it holds, and follows what its owner does', async () => {
    await source('e', 'box/resnet', { maxVersions: 2 });
    await converge();
    expect(targets('e')).toEqual(['2: resnet 2 on 1', '1: resnet 1 on 1']);
    expect(router.table!.endpoints['e']!.targets[0]).toMatchObject({ inputs: [{ name: 'x' }], maxBatchSize: 8 });
    a.own.set('resnet', { '1': 'UNAVAILABLE', '2': 'READY', '3': 'READY' });
    await converge();
    expect(targets('e')).toEqual(['3: resnet 3 on 1', '2: resnet 2 on 1']);
    a.own.set('resnet', { '3': 'LOADING' });
    await converge();
    expect(targets('e')).toEqual(['3: resnet 3 on 1']);
    a.own.set('resnet', { '3': 'READY' });
    await converge();
    expect(targets('e')).toEqual(['3: resnet 3 on 1']);
    expect([a.loads, a.unloads]).toEqual([[], []]);
  });

  it('is one of several that are balanced, found by their pool', async () => {
    await source('e', 'boxes/resnet');
    const b = await register('box-2', { pool: 'boxes' });
    await register('other');
    b.own.set('resnet', { '2': 'READY' });
    await converge();
    expect(targets('e')).toEqual(['2: resnet 2 on 2']);
    await world.get(DrainService).drain(operator, 'box-2', { reason: '', force: false });
    await expect(unregister(b)).rejects.toMatchObject({ message: expect.stringContaining('in use by e') });
    await converge();
    expect(targets('e')).toEqual(['2: resnet 2 on 1']);
    await unregister(b);
    await expect(unregister(a)).rejects.toMatchObject({ code: 'conflict' });
  });

  it('keeps its routes while it does not answer, tells why, and loses nothing when it is lost', async () => {
    await source('e', 'box/resnet');
    await converge();
    a.down = 'connection refused';
    await converge();
    await world.database.query(`update servers set last_seen_at = now() - interval '1 hour'`);
    await world.database.query(
      `update installation set watching_since = now() - interval '1 hour', servers_watched_since = now() - interval '1 hour'`,
    );
    await sweep(world);
    await converge();
    const [shown] = await world.get(ServerService).list();
    expect([shown!.live, shown!.external]).toEqual([false, { mode: 'adopt', problem: 'connection refused' }]);
    expect(targets('e')).toEqual(['2: resnet 2 on 1']);
    a.down = undefined;
    await converge();
    expect((await world.get(ServerService).list())[0]).toMatchObject({ live: true, external: { problem: null } });
    expect(targets('e')).toEqual(['2: resnet 2 on 1']);
  });

  it('gets no model of the registry, and says so', async () => {
    await world.versions.put('nlp/a');
    await world.apply(ruleSpec('mine', 'nlp/a', { fleet: { pool: 'boxes' } }));
    await converge();
    expect((await world.endpoint('mine')).status.message).toContain('has no agent');
    expect([a.loads, held(a)]).toEqual([[], []]);
  });

  it('says what it waits for when nothing is held, and serves it as soon as it is', async () => {
    await source('e', 'box/bert');
    await converge();
    expect((await world.endpoint('e')).status).toMatchObject({
      phase: 'blocked',
      message: expect.stringContaining('box'),
    });
    a.own.set('bert', { '7': 'READY' });
    await converge();
    expect(targets('e')).toEqual(['7: bert 7 on 1']);
    await world.get(EndpointService).remove(operator, 'e');
    await converge();
    await unregister(a);
    expect([a.loads, a.unloads]).toEqual([[], []]);
  });
});

describe('a Triton that we load small models into', () => {
  let a: FakeExternal;
  beforeEach(async () => {
    a = await register('box', { pool: 'boxes', mode: 'explicit' });
    a.own.set('theirs', { '1': 'READY' });
  });
  const endpoint = (name = 'e', model = 'nlp/a') => world.apply(ruleSpec(name, model, { fleet: { pool: 'boxes' } }));

  it('holds the new version before the old one goes, and keeps it until routers have let go', async () => {
    await world.versions.put('nlp/a', { files: files('one') });
    await endpoint();
    await converge();
    expect([held(a), router.versions('e')]).toEqual([['a-v1'], [1]]);
    const [model] = a.inline.values();
    expect(Buffer.from(model!.files.get('1/model.onnx')!).toString()).toBe('one');
    expect(model!.config).toMatchObject({ platform: 'onnxruntime_onnx', input: [{ name: 'x' }] });
    await world.versions.put('nlp/a', { files: files('two') });
    await converge([]);
    expect(held(a)).toEqual(['a-v1', 'a-v2']);
    await router.poll();
    router.inFlight = Object.fromEntries(
      (await world.database.query(`select id from deployments where version = 1`)).map(({ id }) => [id, 1]),
    );
    await converge();
    expect(held(a)).toEqual(['a-v1', 'a-v2']);
    router.inFlight = {};
    await converge();
    expect([held(a), router.versions('e')]).toEqual([['a-v2'], [2]]);
    expect(a.unloads.every((name) => name.startsWith('a-v1-'))).toBe(true);
  });

  it('loads again after a restart, and what it does not load fails in its words, once', async () => {
    await world.versions.put('nlp/a', { files: files('one') });
    await endpoint();
    await converge();
    a.restart();
    await converge();
    expect([held(a), a.loads.length]).toEqual([['a-v1'], 2]);
    a.bad.set('b-v1-', 'load failed: bad bytes');
    await world.versions.put('nlp/b', { files: files('bad') });
    await endpoint('f', 'nlp/b');
    await converge();
    stand.restart();
    await converge();
    expect((await world.endpoint('f')).status.message).toContain('bad bytes');
    expect(a.loads.filter((name) => name.startsWith('b-')).length).toBe(1);
  });

  it('a slow load makes the server neither silent nor busy twice, and a killed control plane begins it again', async () => {
    let release: () => void = () => undefined;
    a.hold = new Promise((done) => (release = done));
    await world.versions.put('nlp/a', { files: files('one') });
    await endpoint();
    await converge();
    expect([a.loads.length, await world.states('e')]).toEqual([1, ['1 loading']]);
    stand.restart();
    await converge();
    expect(a.loads.length).toBe(2);
    a.hold = undefined;
    release();
    await converge();
    expect([await world.states('e'), a.unloads]).toEqual([['1 ready'], []]);
  });

  it('bytes that are not those uploaded are not loaded', async () => {
    const [file] = files('one');
    stand.bytes.set(file!.sha256, Buffer.from('six'));
    await world.versions.put('nlp/a', { files: [file!] });
    await endpoint();
    await converge();
    expect([a.loads, await world.states('e')]).toEqual([[], ['1 loading']]);
    stand.bytes.set(file!.sha256, Buffer.from('one'));
    await converge();
    expect(held(a)).toEqual(['a-v1']);
  });

  it('a large model is refused with the limit', async () => {
    await world.versions.put('nlp/a', { files: files('large', 65 * 1_048_576) });
    await endpoint();
    await converge();
    expect((await world.endpoint('e')).status.message).toMatch(/takes models up to 64 MiB \(this one has 65 MiB\)/);
    expect(a.loads).toEqual([]);
  });

  it('a restored database unloads nothing before a person confirms it', async () => {
    await world.versions.put('nlp/a', { files: files('one') });
    await endpoint();
    await converge();
    const { lineage } = await world.get(Installation).current();
    await world.get(Installation).rotate(lineage, null, 'test');
    await world.get(EndpointService).remove(operator, 'e');
    await world.database.query(`delete from placements`);
    await converge();
    expect([held(a), a.unloads]).toEqual([['a-v1'], []]);
    await world.get(Installation).confirm(operator);
    await converge();
    expect(held(a)).toEqual([]);
    expect(a.own.get('theirs')).toEqual({ '1': 'READY' });
  });

  it('is not forgotten while it holds a model of ours, unless it is gone for good', async () => {
    await world.versions.put('nlp/a', { files: files('one') });
    await endpoint();
    await converge();
    await world.get(EndpointService).remove(operator, 'e');
    await world.converge([], [router]);
    await expect(unregister(a)).rejects.toMatchObject({ message: expect.stringContaining('still holds a-v1-') });
    await unregister(a, true);
    expect((await world.get(ServerService).list()).length).toBe(0);
  });
});
