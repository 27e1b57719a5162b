import type { DesiredModel } from '@perch/contracts';
import { EndpointService } from '@perch/endpoints';
import { DrainService, FleetViewService, type ModelVariant, PlacementStore } from '@perch/fleet';
import { WorkStore } from '@perch/platform/database';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec, transactions } from '../support/fleet.ts';
import { gibibyte, needed, serverFacts } from '../support/placement.ts';

let world: FleetWorld;
let router: FakeRouter;
let agents: FakeAgent[];
const join = async (name: string, more: Partial<FakeAgent> = {}) => {
  const agent = Object.assign(await world.agent(name), more);
  agents.push(agent);
  await agent.report();
  return agent;
};
const converge = () => world.converge(agents, [router]);
const quick = { limits: { timeoutMs: 1 } };

beforeEach(async () => {
  agents = [];
  world = await FleetWorld.start();
  router = await world.router('r1');
});
afterEach(() => world.close());

/** Deploys the newest version with other variants than its files give, before any server is there to take it. */
async function serve(
  endpoint: string,
  model: string,
  change: (own: ModelVariant) => ModelVariant[],
  more: object = {},
) {
  await world.apply(ruleSpec(endpoint, model, { ...quick, ...more }));
  if (world.versions.of(model).length === 0) await world.versions.put(model);
  await world.settle();
  const [row] = await world.database.query('select body from deployments where endpoint = $1', [endpoint]);
  const variants = change(row!['body'].variants[0]);
  for (const one of variants) await world.get(PlacementStore).describeVariant(transactions(world).manager, one);
  await world.database.query('update deployments set body = jsonb_set(body, $2, $3) where endpoint = $1', [
    endpoint,
    '{variants}',
    JSON.stringify(variants),
  ]);
}
const heldNames = (agent: FakeAgent) =>
  Object.keys(agent.desired)
    .map((name) => name.replace(/-[0-9a-f]{12}$/, ''))
    .sort();
const bodyOf = (agent: FakeAgent, prefix: string): DesiredModel =>
  Object.entries(agent.desired).find(([name]) => name.startsWith(prefix))![1];

describe('what models need beside them', () => {
  const withNeeds =
    (...needs: ModelVariant['needs']) =>
    (own: ModelVariant) => [{ ...own, needs }];

  it('lies on the same server, under its own or its literal name, and stays while anybody needs it', async () => {
    await serve('a', 'nlp/a', withNeeds(needed('tok-v1', 'tok', 'nlp/tok'), needed('step-v1')));
    await serve('b', 'nlp/b', withNeeds(needed('step-v1')));
    const server = await join('s1');
    await converge();
    expect(heldNames(server)).toEqual(['a-v1', 'b-v1', 'step-v1', 'tok']);
    expect(bodyOf(server, 'a-v1').needs).toEqual(['step-v1', 'tok']);
    expect(server.desired['tok']!.digest).toBe('digest of tok-v1');
    expect(await world.states('a')).toEqual(['1 ready']);

    await world.get(EndpointService).remove(operator, 'a');
    await converge();
    expect(heldNames(server)).toEqual(['b-v1', 'step-v1']);
    expect(server.confirmed).toBe(true);
    expect(server.models).toEqual(['b-v1', 'step-v1']);
    await world.get(EndpointService).remove(operator, 'b');
    await converge();
    expect(server.models).toEqual([]);
    expect(server.confirmed).toBe(true);
  });

  it('a newer version of a used model takes over its literal name, and gives it back', async () => {
    await serve('a', 'nlp/a', withNeeds(needed('tok-v1', 'tok', 'nlp/tok')));
    const server = await join('s1');
    await converge();
    const fleet = world.get(DrainService);
    await fleet.drain(operator, 's1', { reason: '', force: false });
    await serve('b', 'nlp/b', withNeeds(needed('tok-v2', 'tok', 'nlp/tok')));
    await fleet.undrain(operator, 's1', '');
    await converge();
    expect(server.desired['tok']!.digest).toBe('digest of tok-v2');
    await world.get(EndpointService).remove(operator, 'b');
    await converge();
    expect(server.desired['tok']!.digest).toBe('digest of tok-v1');
    expect(server.confirmed).toBe(true);
  });

  it('two different models under one literal name cannot lie on one server', async () => {
    await serve('a', 'nlp/a', withNeeds(needed('tok-v1', 'tok', 'nlp/tok')));
    await serve('b', 'nlp/b', withNeeds(needed('other-v1', 'tok', 'cv/tok')));
    await join('s1');
    await converge();
    const [a, b] = [await world.endpoint('a'), await world.endpoint('b')];
    expect([a.status.phase, b.status.phase].sort()).toEqual(['blocked', 'ready']);
    const blocked = a.status.phase === 'blocked' ? a : b;
    expect(blocked.status.message).toMatch(/s1: holds (nlp|cv)\/tok as tok for endpoint [ab]/);
    await join('s2');
    await world.database.query('update work set next_at = now()');
    await converge();
    expect((await world.endpoint('a')).status.phase).toBe('ready');
    expect((await world.endpoint('b')).status.phase).toBe('ready');
  });
});

describe('several ways to run one deployment', () => {
  const two = (own: ModelVariant): ModelVariant[] => [
    {
      ...own,
      tritonModel: 'fast',
      model: { ...own.model, digest: 'fast' },
      requires: { ...own.requires, backend: 'tensorrt' },
    },
    own,
  ];

  it('each server gets the first that it can run, and routers ask each by its own name', async () => {
    await serve('a', 'nlp/a', two, { fleet: { replicas: 2 } });
    const quickOne = await join('g', { facts: serverFacts({ host: 'g', backends: ['tensorrt', 'onnxruntime'] }) });
    const plain = await join('c', { facts: serverFacts({ host: 'c', backends: ['onnxruntime'] }) });
    await converge();
    expect(heldNames(quickOne)).toEqual(['fast']);
    expect(heldNames(plain)).toEqual(['a-v1']);
    const [target] = router.table!.endpoints['a']!.targets;
    expect(target!.servers).toHaveLength(2);
    expect(target!.models).toEqual({ [quickOne.id]: 'fast' });
  });

  it('one that fails for good is followed by the next one there, and both are told', async () => {
    await serve('a', 'nlp/a', two);
    const server = await join('g');
    server.behaviour.set('fast', 'engine was built for another version');
    await converge();
    expect(await world.states('a')).toEqual(['1 ready']);
    expect(server.models).toEqual(['a-v1']);
    expect(server.confirmed).toBe(true);
    const noted = world.noted.filter(({ subject }) => subject === 'a').map(({ action }) => action);
    expect(noted).toContain('deployment.fallback');
    expect(noted).not.toContain('deployment.failed');
    expect((await world.get(FleetViewService).show('g')).failures).toEqual([
      { tritonModel: 'fast', reason: 'engine was built for another version' },
    ]);
    const [shown] = (await world.endpoint('a')).deployments;
    expect(shown!.servers[0]).toMatchObject({ state: 'ready', earlier: [{ tritonModel: 'fast' }] });
  });

  it('what failed before is tried again when the server is another one', async () => {
    await serve('a', 'nlp/a', two);
    const server = await join('g', { facts: serverFacts({ tensorrt: '10.3.0' }) });
    server.behaviour.set('fast', 'engine was built for another version');
    await converge();
    server.behaviour.clear();
    server.facts = serverFacts({ tensorrt: '10.4.0' });
    await server.report();
    await converge();
    expect(await world.database.query('select * from variant_failures')).toEqual([]);
    expect(server.models).toEqual(['a-v1']);
  });
});

describe('memory', () => {
  const machine = (host: string, gib = 4) => ({ facts: serverFacts({ host, ramBytes: gib * gibibyte }) });

  it('is measured where it is not known, and known from then on for every server of that kind', async () => {
    await serve('a', 'nlp/a', (own) => [own], { fleet: { replicas: 2 } });
    const first = await join('s1', machine('x'));
    first.sizes.set('a-', 2 * gibibyte);
    first.behaviour.set('a-', 'loading');
    await converge();
    expect(bodyOf(first, 'a-v1').measure).toBe(true);
    first.behaviour.clear();
    await converge();
    expect(bodyOf(first, 'a-v1').measure).toBeUndefined();
    const second = await join('s2', machine('y'));
    await converge();
    expect(bodyOf(second, 'a-v1').measure).toBeUndefined();
    const shown = await world.get(FleetViewService).show('s1');
    expect(shown.models).toMatchObject([{ state: 'ready', memory: { ramBytes: 2 * gibibyte }, waitsFor: null }]);
    expect(shown.ram).toEqual({ totalBytes: 4 * gibibyte, freeBytes: (4 - 2 - 0.25) * gibibyte });
    const [pool] = await world.get(FleetViewService).pools();
    expect(pool).toMatchObject({ name: 'default', servers: 2, live: 2, draining: 0, models: 2, endpoints: 1 });
    expect(pool!.ram!.freeBytes).toBe(2 * 1.75 * gibibyte);
  });

  it('what does not fit is not placed, says why, and comes when there is room', async () => {
    const big = (own: ModelVariant) => [{ ...own, requires: { ...own.requires, memoryBytes: 3 * gibibyte } }];
    await serve('a', 'nlp/a', big);
    await serve('b', 'nlp/b', big);
    const server = await join('s1', machine('x'));
    await converge();
    const blocked = [await world.endpoint('a'), await world.endpoint('b')].find(
      ({ status }) => status.phase === 'blocked',
    )!;
    expect(blocked.status.message).toContain('wants 1 server, none can hold it (s1: wants 3.0 GiB, 768 MiB free)');
    await world.get(EndpointService).remove(operator, blocked.name === 'a' ? 'b' : 'a');
    await converge();
    await converge();
    expect((await world.endpoint(blocked.name)).status.phase).toBe('ready');
    expect(server.models).toHaveLength(1);
  });

  it('what a model server uses counts when it is more than what is placed on it', async () => {
    await serve('a', 'nlp/a', (own) => [{ ...own, requires: { ...own.requires, memoryBytes: gibibyte } }]);
    await join('s1', { ...machine('x'), usage: { ramBytes: 3.5 * gibibyte, gpuBytes: {} } });
    await converge();
    expect((await world.endpoint('a')).status.message).toContain('s1: wants 1.0 GiB, 256 MiB free');
  });
});

describe('a server that joins', () => {
  it('takes over as much as pays, one deployment at a time, without a gap', async () => {
    const first = await join('s1');
    const names = Array.from({ length: 8 }, (_, at) => `e${at}`);
    for (const name of names) await world.apply(ruleSpec(name, `nlp/${name}`, quick));
    for (const name of names) await world.versions.put(`nlp/${name}`);
    await converge();
    const second = await join('s2');
    const counts: number[][] = [];
    const served = () => names.every((name) => (router.table!.endpoints[name]?.targets[0]?.servers.length ?? 0) > 0);
    for (let round = 0; round < 4; round += 1) {
      for (const name of names) await world.get(WorkStore).enqueue(null, 'endpoint', name);
      await world.settle();
      const [row] = await world.database.query(`select count(*)::integer as moving from placements where yields`);
      expect(row!['moving']).toBeLessThanOrEqual(1);
      await converge();
      expect(served()).toBe(true);
      counts.push([first.models.length, second.models.length]);
    }
    expect(counts.at(-1)).toEqual([6, 2]);
    expect(counts.at(-2)).toEqual([6, 2]);
    const [row] = await world.database.query('select count(*)::integer as left from placements where yields');
    expect(row!['left']).toBe(0);
  });
});
