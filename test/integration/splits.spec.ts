import type { SplitSpecInput } from '@perch/contracts';
import { EndpointService, RoutingTableReconcile, SplitService } from '@perch/endpoints';
import { theOnlyKey, work } from '@perch/fleet';
import { WorkStore } from '@perch/platform/database';
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

const splits = () => world.get(SplitService);
const apply = (spec: SplitSpecInput) => splits().apply(operator, spec);
const converge = () => world.converge([agent], [router]);

/** `<endpoint>/<version> <share>` of each arm in the router's table. */
function arms(name: string): string[] {
  const { arms: all, targets } = router.table!.endpoints[name]!;
  return all
    .map(({ deployment, share }) => {
      const target = targets.find((one) => one.deployment === deployment)!;
      return `${target.endpoint ?? name}/${target.version} ${Math.round(share * 1e6) / 1e6}`;
    })
    .sort();
}

async function serve(endpoint: string, model: string, versions: number, more = {}): Promise<void> {
  await world.apply(ruleSpec(endpoint, model, more));
  for (let n = 0; n < versions; n += 1) await world.versions.put(model);
  await converge();
}

describe('a split in the table', () => {
  it('shares fixed targets by weight, follows an endpoint as a whole, and keeps the versions it names', async () => {
    await serve('a/one', 'p/one', 2);
    await serve('a/two', 'p/two', 1);
    await apply({ name: 'a/ab', targets: ['a/one/1', 'a/two'], weights: [1, 3] });
    await converge();
    expect(arms('a/ab')).toEqual(['a/one/1 0.25', 'a/two/1 0.75']);
    // named, so loaded, and yet the endpoint's own traffic stays with the newest
    expect(await world.states('a/one')).toEqual(['2 ready', '1 ready']);
    expect(arms('a/one')).toEqual(['a/one/2 1']);
    expect((await world.endpoint('a/one')).status).toMatchObject({ phase: 'ready', servingVersions: [2] });

    await world.versions.put('p/one');
    await world.versions.put('p/two');
    await converge();
    expect(arms('a/ab')).toEqual(['a/one/1 0.25', 'a/two/2 0.75']);
    expect(await world.states('a/one')).toEqual(['3 ready', '1 ready']);
    expect(await splits().get('a/ab')).toMatchObject({
      generation: 1,
      arms: [
        { target: 'a/one/1', endpoint: 'a/one', version: 1, weightPercent: 25, missing: null },
        { target: 'a/two', endpoint: 'a/two', version: 2, weightPercent: 75, missing: null },
      ],
      message: '25 % to a/one/1, 75 % to a/two',
    });

    await splits().remove(operator, 'a/ab');
    await converge();
    expect(router.table!.endpoints['a/ab']).toBeUndefined();
    expect(await world.states('a/one')).toEqual(['3 ready']);
    expect(agent.models.filter((name) => name.startsWith('one-'))).toEqual(['one-v3']);
  });

  it('gives the first weight below a prefix to the newest version, also to one that comes later', async () => {
    await apply({ name: 'b-canary', targetPrefix: 'b/', newestFirst: [0.1, 0.9] });
    await converge();
    expect(router.table!.endpoints['b-canary']).toMatchObject({ arms: [], targets: [] });
    expect((await splits().get('b-canary')).message).toBe('nothing is served below b/: no endpoint lies there yet');
    await serve('b/m', 'p/bm', 2, { model: { project: 'p', name: 'bm', maxVersions: 2 } });
    expect(arms('b-canary')).toEqual(['b/m/1 0.9', 'b/m/2 0.1']);
    await world.versions.put('p/bm');
    await converge();
    expect(arms('b-canary')).toEqual(['b/m/2 0.9', 'b/m/3 0.1']);
    await serve('bb', 'p/bb', 1);
    await world.get(EndpointService).remove(operator, 'b/m');
    await converge();
    expect(arms('b-canary')).toEqual([]);
    expect(agent.models.filter((name) => name.startsWith('bm-'))).toEqual([]);
  });

  it('says what is missing, and gives its share to the heaviest that is left', async () => {
    await serve('c/m', 'p/cm', 3);
    agent.behaviour.set('cm-v1-', 'onnx: broken');
    await apply({ name: 'c/s', targets: ['c/m/1', 'c/m/2', 'c/m/3'], weights: [50, 30, 20] });
    await converge();
    expect(arms('c/s')).toEqual(['c/m/2 0.8', 'c/m/3 0.2']);
    const shown = await splits().get('c/s');
    expect(shown.arms[0]).toMatchObject({
      version: 1,
      weightPercent: 0,
      missing: 'version 1 failed: server s1: onnx: broken',
    });
    expect(shown.message).toContain('c/m/1 is missing, so its 50 % go to c/m/2');
    // one failed version changes nothing for the endpoint itself
    expect((await world.endpoint('c/m')).status).toMatchObject({ phase: 'ready', servingVersions: [3] });
    agent.behaviour.clear();
  });

  it('under the name of an endpoint sets the weights of that endpoint, until it is removed', async () => {
    await serve('d/m', 'p/dm', 3);
    await apply({ name: 'd/m', targets: ['d/m/3', 'd/m/2'], weights: [10, 90], sticky: { header: 'x-user' } });
    await converge();
    expect(arms('d/m')).toEqual(['d/m/2 0.9', 'd/m/3 0.1']);
    expect(router.table!.endpoints['d/m']!.sticky).toEqual({ header: 'x-user', salt: 'd/m' });
    expect((await splits().get('d/m')).message).toBe('sets the weights of endpoint d/m: 10 % to d/m/3, 90 % to d/m/2');
    await apply({ name: 'd/all', targets: ['d/m'], weights: [1] });
    await converge();
    expect(arms('d/all')).toEqual(['d/m/2 0.9', 'd/m/3 0.1']);
    await expect(world.apply(ruleSpec('d/m', 'p/dm', { traffic: { mode: 'progressive' } }))).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('split d/m sets the weights'),
    });
    await splits().remove(operator, 'd/all');
    await splits().remove(operator, 'd/m');
    await converge();
    expect(arms('d/m')).toEqual(['d/m/3 1']);
    expect(await world.states('d/m')).toEqual(['3 ready']);
  });
});

describe('a deployment that two names reach', () => {
  it('is unloaded when no router can send to it under any of them, and not sooner', async () => {
    await serve('e/m', 'p/em', 2, { model: { project: 'p', name: 'em', maxVersions: 2 } });
    await apply({ name: 'e/s', targets: ['e/m/1', 'e/m/2'], weights: [1, 1] });
    await converge();
    const old = (await world.endpoint('e/m')).deployments.find(({ version }) => version === 1)!.id;
    agent.beforeUnload = (names) => {
      const held = Object.values(router.table!.endpoints).flatMap(({ targets }) =>
        targets.map((one) => one.tritonModel),
      );
      expect(names.filter((name) => held.includes(name))).toEqual([]);
    };
    // still named by the split: published twice more, it stays
    await world.versions.put('p/em');
    await world.versions.put('p/em');
    await converge();
    expect(arms('e/s')).toEqual(['e/m/1 0.5', 'e/m/2 0.5']);
    expect(await world.states('e/m')).toEqual(['4 ready', '3 ready', '2 ready', '1 ready']);

    // let go by the split: a router that still has requests by that name in hand keeps it loaded
    await apply({ name: 'e/s', targets: ['e/m/2'], weights: [1] });
    router.inFlight = { [old]: 1 };
    await converge();
    expect(arms('e/s')).toEqual(['e/m/2 1']);
    expect(agent.models).toContain('em-v1');
    router.inFlight = {};
    await converge();
    expect(agent.models).not.toContain('em-v1');
    expect(await world.states('e/m')).toEqual(['4 ready', '3 ready', '2 ready']);
    agent.beforeUnload = () => undefined;
  });

  it('is not unrouted by a split that leaves it: the endpoint still sends there', async () => {
    await serve('f/m', 'p/fm', 1);
    await apply({ name: 'f/s', targets: ['f/m'], weights: [1] });
    await converge();
    await splits().remove(operator, 'f/s');
    await converge();
    const rows = await world.database.query(
      `select routed_revision, unrouted_revision from placements where endpoint = 'f/m'`,
    );
    expect(rows).toEqual([{ routed_revision: expect.any(String), unrouted_revision: null }]);
    const [head] = await world.database.query(`select confirmed from documents where id = 'routing-table'`);
    expect(head).toEqual({ confirmed: true });
  });

  it('is compiled again now and then, though nothing asked for it', async () => {
    await apply({ name: 'f/t', targets: ['f/m'], weights: [1] });
    await converge();
    // as if an earlier release had compiled it in another way
    await world.database.query(`update document_entries set value = jsonb_set(value, '{timeoutMs}', '5'), digest = 'x' where key = 'f/t'`); // biome-ignore format: one row reads better
    for (let rounds = 0; rounds < 3; rounds += 1) await world.get(RoutingTableReconcile).lookAgain(2);
    await world.get(WorkStore).enqueue(null, work.routingTable, theOnlyKey);
    await converge();
    expect(router.table!.endpoints['f/t']!.timeoutMs).toBe(60_000);
  });

  it('compiles splits in the table of their endpoints, wherever a process dies', async () => {
    await serve('g/m', 'p/gm', 1);
    for (const n of [1, 2, 4])
      for (const when of ['before commit', 'after commit'] as const) {
        const crash = world.crashAt(n, when);
        const weights = [n, when === 'before commit' ? 1 : 2];
        await world.versions.put('p/gm');
        await apply({ name: 'g/s', targets: ['g/m', 'g/m/1'], weights }).catch(() => undefined);
        await converge().catch(() => undefined);
        crash.stop();
        await world.restart();
        await apply({ name: 'g/s', targets: ['g/m', 'g/m/1'], weights });
        await converge();
        const newest = world.versions.of('p/gm').length;
        const share = (at: number) => Math.round((weights[at]! / (weights[0]! + weights[1]!)) * 1e6) / 1e6;
        expect(arms('g/s')).toEqual([`g/m/${newest} ${share(0)}`, `g/m/1 ${share(1)}`].sort());
      }
  });
});

describe('what is refused', () => {
  const refused = (spec: SplitSpecInput) => apply(spec).then(() => 'taken', (error: { code: string; message: string }) => `${error.code}: ${error.message}`); // biome-ignore format: one row reads better

  it('unknown targets, splits of splits, versions there are not, names that hide others', async () => {
    await serve('h/m', 'p/hm', 2);
    await world.apply(ruleSpec('h/fixed', 'p/hm', { model: { project: 'p', name: 'hm', version: 2 } }));
    await apply({ name: 'h/s', targets: ['h/m'], weights: [1] });
    const of = (name: string, ...targets: string[]) => refused({ name, targets, weights: targets.map(() => 1) });
    expect(await of('h/x', 'h/none')).toMatch(/^invalid: split h\/x: targets.0: there is no endpoint h\/none/);
    expect(await of('h/x', 'h/m', 'h/none/3')).toMatch(/targets.1: there is no endpoint h\/none\/3 and none h\/none/);
    expect(await of('h/x', 'h/s')).toMatch(/targets.0: h\/s is a split/);
    expect(await of('h/s', 'h/s')).toMatch(/targets.0: h\/s is the split itself/);
    expect(await of('h/x', 'h/m/9')).toMatch(/endpoint h\/m has no version 9; it has 2, 1/);
    expect(await of('h/x', 'h/fixed/1')).toMatch(/endpoint h\/fixed serves version 2 alone, not 1/);
    expect(await of('h/m', 'h/m/1', 'h/fixed')).toMatch(/h\/m is an endpoint, so this split sets its weights/);
    expect(await of('h/m/2', 'h/fixed')).toMatch(/^conflict: split h\/m\/2 would hide version 2 of endpoint h\/m/);
    expect(await of('h/s/2', 'h/fixed')).toMatch(/^conflict: .*hide version 2 of/);
    await world.versions.change('p/hm', 1, { state: 'archived' });
    expect(await of('h/x', 'h/m/1')).toMatch(/version 1 of p\/hm is archived/);
    await expect(world.apply(ruleSpec('h/s', 'p/hm'))).rejects.toMatchObject({ code: 'conflict' });
    await expect(world.apply(ruleSpec('h/s/1', 'p/hm'))).rejects.toMatchObject({ code: 'conflict' });
    expect(await refused({ name: 'h/m', targetPrefix: 'h/m', newestFirst: [1], access: { inference: 'public' } })).toMatch(/access.inference: h\/m is an endpoint that wants a key/); // biome-ignore format: one row reads better
  });

  it('the removal of an endpoint that a split names', async () => {
    await expect(world.get(EndpointService).remove(operator, 'h/m')).rejects.toMatchObject({
      code: 'conflict',
      message: 'endpoint h/m is in use by split h/s (h/m); change or remove the split first',
    });
  });

  it('what lies outside of the scopes of the key', async () => {
    const scoped = { ...operator, endpoints: ['i/*'] };
    const of = (spec: SplitSpecInput) => splits().apply(scoped, spec, { dryRun: true });
    await expect(of({ name: 'i/s', targets: ['h/m'], weights: [1] })).rejects.toMatchObject({
      code: 'forbidden',
      message: 'key olga is not scoped to endpoint h/m',
    });
    await expect(of({ name: 'i/s', targetPrefix: 'h', newestFirst: [1] })).rejects.toMatchObject({ code: 'forbidden' });
    await expect(of({ name: 'i/s', targetPrefix: 'i/deep/', newestFirst: [1] })).resolves.toMatchObject({
      outcome: 'would_create',
    });
  });

  it('a generation that somebody changed meanwhile; dry runs change nothing and tell what follows', async () => {
    const spec = {
      name: 'h/s',
      targets: ['h/m/2', 'h/fixed'],
      weights: [1, 1],
      access: { inference: 'public' as const },
    };
    await converge();
    const dry = await splits().apply(operator, spec, { dryRun: true });
    expect(dry).toMatchObject({ outcome: 'would_update', generation: 1 });
    expect(dry.effect).toEqual([
      'h/m/2 is loaded and stays loaded, whatever the rule of its endpoint says',
      'anybody may call it without a key, also what wants one under its own name: h/fixed, h/m',
      expect.stringContaining('50 % to h/m/2'),
    ]);
    expect((await splits().get('h/s')).generation).toBe(1);
    await expect(splits().replace(operator, 'h/s', spec, { expectedGeneration: 7 })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('split h/s is at generation 1, not 7'),
    });
    expect((await splits().replace(operator, 'h/s', spec, { expectedGeneration: 1 })).generation).toBe(2);
    expect(await apply(spec)).toMatchObject({ outcome: 'unchanged', effect: [] });
    await expect(splits().create(operator, spec)).rejects.toMatchObject({ code: 'conflict' });
    await expect(splits().get('h/none')).rejects.toMatchObject({ code: 'not_found' });
    expect((await splits().list(null, 100)).map(({ name }) => name)).toContain('h/s');
  });
});
