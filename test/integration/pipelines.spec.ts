import type { PipelineNode, PipelineSpecInput } from '@perch/contracts';
import { EndpointService, ModuleUsersService, PipelineService, SplitService } from '@perch/endpoints';
import { Transactions } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

let world: FleetWorld;
let agent: FakeAgent;
let router: FakeRouter;
beforeAll(async () => {
  world = await FleetWorld.start();
  agent = await world.agent('s1');
  router = await world.router('r1');
  for (const name of ['a', 'b']) {
    await world.apply(ruleSpec(`v/${name}`, `p/${name}`));
    await world.versions.put(`p/${name}`);
  }
  world.modules.put('rank', 'one', { hooks: ['process'], task: 'text-embedding' });
  await converge();
});
afterAll(() => world.close());

const pipelines = () => world.get(PipelineService);
const converge = () => world.converge([agent], [router]);
const a = { endpoint: 'v/a' };
const spec = (name: string, nodes: Record<string, Partial<PipelineNode>>, more: object = {}) =>
  ({ kind: 'Pipeline', name, nodes, output: Object.keys(nodes).map((node) => `$${node}`), ...more }) as PipelineSpecInput; // biome-ignore format: one row reads better
const apply = (input: PipelineSpecInput, options = {}) => pipelines().apply(operator, input, options);
const refused = (input: PipelineSpecInput, options = {}) =>
  apply(input, { dryRun: true, ...options }).then(
    () => 'taken',
    (error: Error & { code: string }) => `${error.code}: ${error.message}`,
  );

describe('a pipeline in the table', () => {
  it('is compiled with its modules bound, follows its generations, and leaves with its name', async () => {
    const nodes = { one: a, two: { module: 'rank', input: { text: '$one' }, options: { k: 1 } } };
    expect(await apply(spec('v/rank', nodes, { description: 'd' }))).toMatchObject({
      outcome: 'created',
      generation: 1,
      effect: ['runs 2 nodes in 2 steps: one; then two', 'node two runs module rank@1'],
    });
    expect((await pipelines().get('v/rank')).message).toBe('it is on its way into the routing table');
    await converge();
    const route = router.table!.endpoints['v/rank']!;
    expect(route).toMatchObject({ access: 'key', timeoutMs: 60_000, targets: [], arms: [] });
    expect(route.pipeline).toMatchObject({
      generation: 1,
      nodes: { one: a, two: { module: 'rank@1' } },
      modules: { two: { module: { name: 'rank', number: 1 }, isolation: 'worker', options: { k: 1 } } },
    });
    expect(await pipelines().get('v/rank')).toMatchObject({
      message: '2 nodes in 2 steps: one; then two',
      nodes: [
        { node: 'one', step: 1, kind: 'endpoint', name: 'v/a', versions: [{ version: 1, sharePercent: 100, servers: ['s1'] }], missing: null },
        { node: 'two', step: 2, waits: ['one'], kind: 'module', name: 'rank@1', isolation: 'worker', missing: null },
      ],
    }); // biome-ignore format: one record

    // the same again changes nothing; a bare name takes the newest module
    expect((await apply(spec('v/rank', nodes, { description: 'd' }))).outcome).toBe('unchanged');
    world.modules.put('rank', 'two', { hooks: ['process'], task: 'text-embedding' });
    const changed = await apply(spec('v/rank', nodes, { description: 'd' }));
    expect([changed.outcome, changed.generation, changed.changes.map(({ path }) => path)]).toEqual(['updated', 2, ['nodes.two.module']]); // biome-ignore format: one row reads better
    expect(changed.effect).toContain('node two runs module rank@2 in place of rank@1');
    await converge();
    expect(router.table!.endpoints['v/rank']!.pipeline!.modules['two']!.module!.number).toBe(2);
    const users = (number: number) => world.get(ModuleUsersService).usersOf(world.get(Transactions).manager, { name: 'rank', number }); // biome-ignore format: one row reads better
    expect(await users(2)).toEqual(['pipeline v/rank']);
    expect(await users(1)).toEqual(['pipeline v/rank (an older generation, which may be rolled back to)']);

    await pipelines().rollback(operator, 'v/rank', 1);
    await converge();
    expect(router.table!.endpoints['v/rank']!.pipeline).toMatchObject({ generation: 3, modules: { two: { module: { number: 1 } } } }); // biome-ignore format: one row reads better
    await pipelines().remove(operator, 'v/rank');
    await converge();
    expect(router.table!.endpoints['v/rank']).toBeUndefined();
    expect(router.table!.endpoints['v/a']!.targets).toHaveLength(1);
    const history = await pipelines().generations('v/rank');
    expect(history.map(({ generation, spec: old, reason }) => [generation, old !== null, reason])).toEqual([
      [4, false, ''],
      [3, true, 'rollback to generation 1'],
      [2, true, ''],
      [1, true, ''],
    ]);
    await expect(pipelines().get('v/rank')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('comes back under a name that an endpoint had, and the other way round', async () => {
    await apply(spec('v/turn', { one: a }));
    await converge();
    await pipelines().remove(operator, 'v/turn');
    await world.apply(ruleSpec('v/turn', 'p/a'));
    await converge();
    expect(router.table!.endpoints['v/turn']).toMatchObject({ targets: [{ version: 1 }] });
    await world.get(EndpointService).remove(operator, 'v/turn');
    await apply(spec('v/turn', { one: a }));
    await converge();
    expect(router.table!.endpoints['v/turn']!.pipeline!.generation).toBe(3);
    await pipelines().remove(operator, 'v/turn');
    await converge();
  });
});

describe('what is refused when a pipeline is added', () => {
  it.each<[string, PipelineSpecInput, string]>([
    ['an unknown endpoint', spec('x', { n: { endpoint: 'v/none' } }), 'invalid: pipeline x: nodes.n.endpoint: there is no endpoint v/none; add it first'],
    ['an unknown module', spec('x', { n: { module: 'none' } }), 'not_found: pipeline x: node n: processing.module: there is no processing module none'],
    ['an unknown number', spec('x', { n: { module: 'rank@9' } }), 'not_found: pipeline x: node n: processing.module: there is no processing module rank@9; of rank there are 2, 1'],
    ['a module that needs a model', spec('x', { n: { module: 'before' } }), 'invalid: pipeline x: nodes.n.module: before@1 has no process hook: it needs a model, so bind it to an endpoint'],
    ['an isolation that is not his to choose', spec('x', { n: { module: 'rank', isolation: 'inline' } }), 'forbidden: pipeline x: node n: '],
    ['more instances than there are', spec('x', { n: { ...a, instances: 2 } }), 'nodes.n.instances: wants 2, and endpoint v/a has what the model server chooses; change it with "perch endpoint update v/a --instances cpu:2"'],
    ['a version that is not loaded', spec('x', { n: { ...a, version: 9 } }), 'nodes.n.version: endpoint v/a serves 1 now: keep version 9 loaded with its maxVersions, or by a split that names it'],
    ['a device that is not known', spec('x', { n: { ...a, device: 'gpu' } }), 'nodes.n.device: wants gpu, and endpoint v/a has what the model server chooses; change it with "perch endpoint update v/a --instances gpu:1"'],
    ['an input the model has not', spec('x', { n: { ...a, input: { z: 1 } } }), 'nodes.n.input: endpoint v/a (tensors as JSON) takes x or inputs, and is given z'],
    ['an output the model has not', spec('x', { n: a, m: { ...a, input: { x: '$n.z' } } }), 'nodes.m.input.x: $n.z: endpoint v/a (tensors as JSON) answers y and outputs, not z'],
    ['an input of the task', spec('x', { n: { module: 'rank', input: { txt: '$body' } } }), 'nodes.n.input: module rank@2 (text-embedding) takes text or inputs or input, and is given txt'],
    ['the name of an endpoint', spec('v/a', { n: { endpoint: 'v/b' } }), 'conflict: endpoint v/a has this name; remove it first, or choose another name'],
    ['a name that hides a version', spec('v/a/7', { n: a }), 'conflict: pipeline v/a/7 would hide version 7 of endpoint v/a; choose another name'],
    ['a cycle', spec('x', { n: { ...a, input: '$m' }, m: { ...a, input: '$n' } }), 'invalid: pipeline spec: nodes.n: a cycle: '],
  ])('%s', async (_what, input, words) => {
    if (world.modules.records.every(({ name }) => name !== 'before')) world.modules.put('before', 'x', { hooks: ['preprocess'] });
    expect(await refused(input)).toContain(words);
  }); // biome-ignore format: a table

  it('an endpoint outside of the scopes of the key', async () => {
    const scoped = { ...operator, endpoints: ['x', 'v/b'] };
    const asked = pipelines().apply(scoped, spec('x', { n: a }), { dryRun: true });
    await expect(asked).rejects.toMatchObject({ code: 'forbidden', message: expect.stringContaining('endpoint v/a') });
  });

  it('a ring of pipelines', async () => {
    await apply(spec('ring/a', { n: a }));
    await apply(spec('ring/b', { n: { endpoint: 'ring/a' } }));
    expect(await refused(spec('ring/a', { n: { endpoint: 'ring/b' } }))).toContain('nodes.n.endpoint: a cycle of pipelines: ring/a -> ring/b -> ring/a'); // biome-ignore format: one row reads better
    expect(await refused(spec('x', { n: { endpoint: 'ring/b', version: 2 } }))).toContain('ring/b is a pipeline and has no versions'); // biome-ignore format: one row reads better
    await expect(pipelines().remove(operator, 'ring/a')).rejects.toMatchObject({ message: 'pipeline ring/a is in use by pipeline ring/b (node n); change or remove that first' }); // biome-ignore format: one row reads better
    await pipelines().remove(operator, 'ring/b');
    await pipelines().remove(operator, 'ring/a');
  });

  it('a generation that is not in force any more, with both differences', async () => {
    await apply(spec('gen', { n: a }));
    await apply(spec('gen', { n: { endpoint: 'v/b' } }));
    const late = pipelines().replace(operator, 'gen', spec('gen', { n: { ...a, timeoutMs: 5 } }), { expectedGeneration: 1 }); // biome-ignore format: one row reads better
    await expect(late).rejects.toMatchObject({ code: 'precondition_failed', details: { theirs: [{ path: 'nodes.n.endpoint' }] } }); // biome-ignore format: one row reads better
    await pipelines().remove(operator, 'gen');
  });
});

describe('what a pipeline counts on', () => {
  it('is not taken from under it', async () => {
    await world.apply(ruleSpec('v/c', 'p/a', { engine: { instances: [{ kind: 'cpu', count: 2 }] } }));
    await world.get(SplitService).apply(operator, { name: 'v/split', targets: ['v/a'], weights: [1] });
    await apply(spec('uses', { n: { endpoint: 'v/c', instances: 2, device: 'cpu' }, m: { endpoint: 'v/split' } }));
    await converge();
    expect((await pipelines().get('uses')).nodes.map(({ kind, instances }) => [kind, instances])).toEqual([['split', null], ['endpoint', '2 cpu']]); // biome-ignore format: one row reads better
    const conflict = (message: string) => ({ code: 'conflict', message });
    await expect(world.get(EndpointService).remove(operator, 'v/c')).rejects.toMatchObject(conflict('endpoint v/c is in use by pipeline uses (node n); change or remove the pipeline first')); // biome-ignore format: one row reads better
    await expect(world.get(SplitService).remove(operator, 'v/split')).rejects.toMatchObject(conflict('split v/split is in use by pipeline uses (node m); change or remove the pipeline first')); // biome-ignore format: one row reads better
    await expect(world.apply(ruleSpec('v/c', 'p/a'))).rejects.toMatchObject({
      code: 'conflict',
      message: 'pipeline uses, node n: instances wants 2, and endpoint v/c has what the model server chooses; change the pipeline first', // biome-ignore format: one row reads better
    });
    await expect(world.apply(ruleSpec('uses', 'p/a'))).rejects.toMatchObject(conflict('pipeline uses has this name; remove it first, or choose another name')); // biome-ignore format: one row reads better
    await pipelines().remove(operator, 'uses');
    await world.get(EndpointService).remove(operator, 'v/c');
  });

  it('says what cannot answer', async () => {
    await world.apply(ruleSpec('v/empty', 'p/empty'));
    await apply(spec('waits', { n: { endpoint: 'v/empty' }, m: a }));
    await converge();
    expect((await pipelines().get('waits')).message).toBe('node n cannot answer: endpoint v/empty serves nothing now'); // biome-ignore format: one row reads better
    const listed = await pipelines().list(null, 10);
    expect(listed.map(({ name }) => name)).toEqual(['waits']);
  });
});
