import type { EndpointWhy, WhyStep } from '@perch/contracts';
import { EndpointDetailService, EndpointSwitchService, WhyService } from '@perch/endpoints';
import { RouterStatsService } from '@perch/fleet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

let world: FleetWorld;
let agent: FakeAgent;
let router: FakeRouter;
beforeAll(async () => {
  world = await FleetWorld.start();
  agent = await world.agent('s1');
  router = await world.router('r1');
});
afterAll(() => world.close());

const converge = () => world.converge([agent], [router]);
const why = (name: string, version: number | null = null): Promise<EndpointWhy> =>
  world.get(WhyService).why(name, version);
const states = ({ chain }: EndpointWhy) => chain.map(({ step, state }) => `${step} ${state}`);
const find = ({ chain }: EndpointWhy, step: WhyStep['step']) => chain.find((one) => one.step === step)!;

describe('why a version is served or not', () => {
  it('follows a version from its upload to its traffic, step by step', async () => {
    await world.apply(ruleSpec('why/a', 'why/a'));
    expect((await why('why/a')).summary).toContain('was not looked at yet');
    await converge();
    expect(await why('why/a')).toMatchObject({
      version: null,
      served: false,
      summary: 'endpoint why/a is not served: model why/a does not exist',
    });

    await world.versions.put('why/a', { state: 'uploading' });
    expect(find(await why('why/a'), 'version')).toMatchObject({ state: 'waiting' });
    await world.versions.change('why/a', 1, { state: 'draft' });
    await converge();
    expect(await why('why/a')).toMatchObject({
      served: false,
      summary: 'version 1 of endpoint why/a is not served: version 1 is a draft, and the rule wants published versions',
    });
    await world.versions.change('why/a', 1, { state: 'published' });
    expect(find(await why('why/a'), 'deployment')).toMatchObject({ state: 'waiting' });

    await world.settle(); // placed, and nobody has told the agent or the routers anything
    const placed = await why('why/a');
    expect(find(placed, 'server').message).toContain('follows revision');
    expect(find(placed, 'route')).toMatchObject({ state: 'waiting' });

    agent.behaviour.set('a-v1', 'loading');
    await agent.sync();
    await world.settle();
    const loading = find(await why('why/a'), 'server');
    expect(loading).toMatchObject({ state: 'waiting', message: 'server s1 is loading it' });
    expect(Date.parse(loading.since!)).toBeGreaterThan(Date.now() - 60_000);

    agent.behaviour.clear();
    agent.held.clear();
    await agent.sync();
    await world.settle(); // published, and the router has not taken the table
    const unheard = await why('why/a');
    expect(find(unheard, 'router')).toMatchObject({ state: 'waiting' });
    expect(unheard.served).toBe(false);

    await converge();
    const served = await why('why/a');
    expect(served).toMatchObject({
      served: true,
      summary: 'version 1 of endpoint why/a is served and gets 100 % of the traffic',
    });
    expect(states(served).every((one) => one.endsWith(' ok'))).toBe(true);
    expect(states(served).map((one) => one.split(' ')[0])).toEqual([
      'endpoint', 'model', 'version', 'rule', 'deployment', 'placement', 'server', 'route', 'router', 'traffic',
    ]); // biome-ignore format: one row
  });

  it("shows Triton's own reason, and which version serves instead", async () => {
    agent.behaviour.set('a-v2', 'failed to load: unexpected inputs');
    await world.versions.put('why/a');
    await converge();
    const failed = await why('why/a');
    expect(failed).toMatchObject({ version: 2, served: false });
    expect(failed.summary).toContain('server s1: failed to load: unexpected inputs');
    const older = await why('why/a', 1);
    expect(older.served).toBe(true); // in the place of version 2
    expect(find(older, 'rule')).toMatchObject({ state: 'failed', message: expect.stringContaining('is older') });
    agent.behaviour.clear();
  });

  it('tells of routers that cannot serve it, of a silent server, and of weights', async () => {
    await world.versions.put('why/b');
    await world.versions.put('why/b');
    await world.apply(
      ruleSpec('why/b', 'why/b', {
        model: { project: 'why', name: 'b', maxVersions: 2 },
        traffic: { mode: 'weighted', weights: { '1': 1 } },
      }),
    );
    await converge();
    const weightless = await why('why/b');
    expect(weightless).toMatchObject({ version: 2, served: false });
    expect(weightless.summary).toContain('its weight is 0: version 1 gets the traffic');
    expect((await why('why/b', 1)).served).toBe(true);

    router.broken.set(1, 'tokenizer.json is broken');
    await converge();
    expect((await why('why/b', 1)).chain.some(({ message }) => message.includes('tokenizer.json is broken'))).toBe(
      true,
    );
    router.broken.clear();
    await converge();

    await world.database.query(`update servers set presence = 'silent' where id = '${agent.id}'`);
    const silent = find(await why('why/b', 1), 'server');
    expect(silent).toMatchObject({ state: 'waiting', message: expect.stringContaining('is silent') });
    await converge();
  });

  it('says what was removed, and knows no name that never was', async () => {
    await expect(why('why/nobody')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('stopping and starting', () => {
  it('unloads all of it, keeps its spec, and brings the same versions back', async () => {
    const before = (await world.endpoint('why/b')).deployments.map(({ tritonModel }) => tritonModel);
    const stopped = await world.get(EndpointSwitchService).set(operator, 'why/b', true, { reason: 'saves memory' });
    expect(stopped.spec.stopped).toBe(true);
    await converge();
    const after = await world.endpoint('why/b');
    expect(after).toMatchObject({ deployments: [], status: { phase: 'blocked', reason: 'stopped' } });
    expect(agent.models).not.toContain('b-v2');
    expect(router.table!.endpoints['why/b']).toMatchObject({ stopped: true, targets: [], arms: [] });
    expect(await why('why/b')).toMatchObject({
      served: false,
      summary: expect.stringContaining('was stopped by olga'),
    });
    expect(world.noted.at(-1)).toBeDefined();
    expect(world.noted.some(({ action, actor }) => action === 'endpoint.stop' && actor === 'olga')).toBe(true);

    const { generation } = after;
    await world.get(EndpointSwitchService).set(operator, 'why/b', true);
    expect((await world.endpoint('why/b')).generation).toBe(generation); // stopped already
    await expect(
      world.get(EndpointSwitchService).set(operator, 'why/b', false, { expectedGeneration: 1 }),
    ).rejects.toMatchObject({ code: 'precondition_failed' });

    await world.get(EndpointSwitchService).set(operator, 'why/b', false);
    await converge();
    const again = await world.endpoint('why/b');
    expect(again.status).toMatchObject({ phase: 'ready', servingVersions: [2, 1] });
    expect(again.deployments.map(({ tritonModel }) => tritonModel)).toEqual(before);
    expect(router.table!.endpoints['why/b']!.stopped).toBeUndefined();
  });
});

describe('what is shown of one endpoint', () => {
  it('has desired against observed for each server, with what is waited for', async () => {
    agent.behaviour.set('b-v3', 'loading');
    await world.versions.put('why/b');
    await converge();
    const { deployments } = await world.get(EndpointDetailService).get('why/b');
    const coming = deployments.find(({ version }) => version === 3)!;
    expect(coming.servers).toMatchObject([
      { server: 's1', state: 'loading', wanted: 'held', waitsFor: 'Triton on s1', memoryBytes: null },
    ]);
    expect(coming.servers[0]!.since).toMatch(/^\d{4}-/);
    agent.behaviour.clear();
    agent.held.clear();
    router.inFlight = { [deployments.find(({ version }) => version === 1)!.id]: 3 };
    await converge();
    const going = (await world.get(EndpointDetailService).get('why/b')).deployments.at(-1)!;
    expect(going.servers).toMatchObject([
      { state: 'ready', wanted: 'leaving', waitsFor: 'router r1 still has 3 requests in flight' },
    ]);
    router.inFlight = {};
    await converge();
    const ready = (await world.get(EndpointDetailService).get('why/b')).deployments;
    expect(ready.flatMap(({ servers }) => servers.map(({ waitsFor }) => waitsFor))).toEqual([null, null]);
  });
});

describe('what routers counted', () => {
  const counts = (requests: number) => ({
    requests,
    errors: 1,
    retries: 2,
    latency: [requests, ...new Array(26).fill(0)],
  });

  it('keeps the newest cumulative figures of each router, and forgets an earlier boot', async () => {
    const stats = world.get(RouterStatsService);
    await stats.take(router.id, {
      bootId: 'b1',
      stats: { 'why/b': { '2': counts(5), '1': counts(7) }, 'why/a': { '1': counts(1) } },
    });
    await stats.take(router.id, { bootId: 'b1', stats: { 'why/b': { '2': counts(9) } } });
    const other = await world.router('r2');
    await stats.take(other.id, { bootId: 'x', stats: { 'why/b': { '2': counts(4) } } });
    const { counts: found, now } = await stats.ofEndpoint('why/b');
    expect(Math.abs(Date.parse(now) - Date.now())).toBeLessThan(10_000);
    expect(found.map(({ version, routerName, requests }) => [version, routerName, requests])).toEqual([
      [2, 'r1', 9],
      [2, 'r2', 4],
      [1, 'r1', 7],
    ]);
    await stats.take(router.id, { bootId: 'b2', stats: { 'why/b': { '2': counts(1) } } });
    const after = (await stats.ofEndpoint('why/b')).counts;
    expect(after.map(({ version, bootId, requests }) => [version, bootId, requests])).toEqual([
      [2, 'b2', 1],
      [2, 'x', 4],
    ]);
    expect((await stats.ofEndpoint('why/a')).counts).toEqual([]);
  });

  it('takes 200 versions in one statement', async () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`many/e${at}`, { '1': counts(at) }]));
    const started = performance.now();
    for (let turn = 0; turn < 20; turn += 1)
      await world.get(RouterStatsService).take(router.id, { bootId: 'b2', stats: many });
    console.info(`200 versions saved in ${((performance.now() - started) / 20).toFixed(1)} ms`);
    expect((await world.get(RouterStatsService).ofEndpoint('many/e7')).counts).toMatchObject([{ requests: 7 }]);
  });
});
