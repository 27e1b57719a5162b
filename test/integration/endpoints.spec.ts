import { sha256Hex } from '@perch/contracts';
import { EndpointService, FanOutReconcile } from '@perch/endpoints';
import { WorkStore } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

describe('an endpoint with an auto-update rule', () => {
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

  it('waits for a version, serves the first, and follows what is published', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await converge();
    expect((await world.endpoint('text/a')).status).toMatchObject({ phase: 'blocked', reason: 'no_model' });
    expect(router.table!.endpoints['text/a']!.targets).toEqual([]);

    await world.versions.put('nlp/a');
    await converge();
    expect(await world.states('text/a')).toEqual(['1 ready']);
    expect(router.arms('text/a')).toEqual(['1 1']);
    expect(agent.models).toEqual(['a-v1']);

    await world.versions.put('nlp/a');
    await converge();
    expect(await world.states('text/a')).toEqual(['2 ready']);
    expect(router.arms('text/a')).toEqual(['2 1']);
    expect(agent.models).toEqual(['a-v2']);
    expect((await world.endpoint('text/a')).status).toMatchObject({
      phase: 'ready',
      servingVersions: [2],
      nextVersion: null,
    });
  });

  it('unpublish, tag, untag and archive all re-evaluate the rule', async () => {
    const select = { tags: ['prod'], tagMatch: 'any' as const, published: false };
    await world.apply(ruleSpec('text/b', 'nlp/b', { model: { project: 'nlp', name: 'b', select, maxVersions: 2 } }));
    const serving = async () => {
      await converge();
      return (await world.states('text/b')).join(', ');
    };
    for (const tags of [['prod'], ['prod', 'x'], []]) await world.versions.put('nlp/b', { tags });
    expect(await serving()).toBe('2 ready, 1 ready');
    await world.versions.change('nlp/b', 3, { tags: ['prod'] });
    expect(await serving()).toBe('3 ready, 2 ready');
    await world.versions.change('nlp/b', 3, { tags: [] });
    expect(await serving()).toBe('2 ready, 1 ready');
    await world.versions.change('nlp/b', 2, { state: 'draft' });
    expect(await serving()).toBe('2 ready, 1 ready');
    await world.versions.change('nlp/b', 2, { state: 'archived' });
    expect(await serving()).toBe('1 ready');
    expect(router.arms('text/b')).toEqual(['1 1']);
    await world.versions.change('nlp/b', 1, { state: 'archived' });
    expect(await serving()).toBe('');
    expect((await world.endpoint('text/b')).status).toMatchObject({ phase: 'blocked', reason: 'no_version' });
    expect(agent.models.filter((name) => name.startsWith('b-'))).toEqual([]);
  });

  it('a version that fails changes nothing for what serves, and says what the model server said', async () => {
    await world.apply(ruleSpec('text/c', 'nlp/c'));
    await world.apply(ruleSpec('text/neighbour', 'nlp/c'));
    await world.versions.put('nlp/c');
    await converge();
    agent.behaviour.set('c-v2-', 'onnx: protobuf parsing failed');
    await world.versions.put('nlp/c');
    await converge();
    expect(await world.states('text/c')).toEqual(['2 failed', '1 ready']);
    expect(router.arms('text/c')).toEqual(['1 1']);
    const { status } = await world.endpoint('text/c');
    expect(status).toMatchObject({
      phase: 'blocked',
      reason: 'deployment_failed',
      servingVersions: [1],
      nextVersion: 2,
    });
    expect(status.message).toBe('version 2 failed: server s1: onnx: protobuf parsing failed; version 1 serves');
    await world.versions.put('nlp/c');
    await converge();
    expect(await world.states('text/c')).toEqual(['3 ready']);
    expect(agent.models.filter((name) => name.startsWith('c-'))).toEqual(['c-v3']);
  });

  it('the old version serves until the new one is ready, and stays loaded while a request for it runs', async () => {
    await world.apply(ruleSpec('text/d', 'nlp/d'));
    await world.versions.put('nlp/d');
    await converge();
    agent.behaviour.set('d-v2-', 'loading');
    await world.versions.put('nlp/d');
    await converge();
    expect(router.arms('text/d')).toEqual(['1 1']);
    const { status, deployments } = await world.endpoint('text/d');
    expect(status).toMatchObject({ phase: 'progressing', reason: 'loading', nextVersion: 2 });
    const old = deployments.find(({ version }) => version === 1)!;

    agent.behaviour.delete('d-v2-');
    router.inFlight = { [old.id]: 3 };
    await converge();
    expect(router.arms('text/d')).toEqual(['2 1']);
    expect(await world.states('text/d')).toEqual(['2 ready', '1 draining']);
    expect(agent.models).toContain('d-v1');

    router.inFlight = {};
    await converge();
    expect(await world.states('text/d')).toEqual(['2 ready']);
    expect(agent.models).not.toContain('d-v1');
  });

  it('a version that routers cannot serve gets no traffic and takes nothing away, until they can', async () => {
    await world.apply(ruleSpec('text/p', 'nlp/p'));
    for (let n = 1; n <= 76; n += 1) await world.versions.put('nlp/p', { state: n === 75 ? 'published' : 'draft' });
    await converge();
    expect(router.arms('text/p')).toEqual(['75 1']);
    router.broken.set(76, 'tokenizer.json: unknown type');
    await world.versions.change('nlp/p', 76, { state: 'published' });
    // As a router does that can serve none of the new targets: it keeps the old one and says so.
    const old = (await world.endpoint('text/p')).deployments[0]!.id;
    router.inFlight = { [old]: 1 };
    await converge();
    expect(await world.states('text/p')).toEqual(['76 failed', '75 ready']);
    expect(router.arms('text/p')).toEqual(['75 1']);
    expect((await world.endpoint('text/p')).status.message).toBe(
      'version 76 failed: router r1: tokenizer.json: unknown type; version 75 serves',
    );
    router.inFlight = {};
    await converge();
    expect(agent.models).toEqual(expect.arrayContaining(['p-v75', 'p-v76']));
    router.broken.clear();
    await converge();
    expect(await world.states('text/p')).toEqual(['76 ready']);
    expect(router.arms('text/p')).toEqual(['76 1']);
  });

  it('new engine settings and new processing make new deployments of the same version, without a gap', async () => {
    await world.apply(ruleSpec('text/e', 'nlp/e'));
    await world.versions.put('nlp/e');
    await converge();
    const [first] = (await world.endpoint('text/e')).deployments;
    await world.apply(
      ruleSpec('text/e', 'nlp/e', { processing: { builtin: 'text-embedding', options: { pooling: 'mean' } } }),
    );
    await converge();
    const [second] = (await world.endpoint('text/e')).deployments;
    expect(second!.id).not.toBe(first!.id);
    expect(second!.tritonModel).toBe(first!.tritonModel);
    expect(router.table!.endpoints['text/e']!.targets[0]!.processing.builtin).toBe('text-embedding');
    await world.apply(ruleSpec('text/e', 'nlp/e', { engine: { maxBatchSize: 8 } }));
    await converge();
    const [third] = (await world.endpoint('text/e')).deployments;
    expect(third!.tritonModel).not.toBe(first!.tritonModel);
    expect(agent.models.filter((name) => name.startsWith('e-'))).toHaveLength(1);
  });

  it('files that cannot be served fail with words and disturb nobody', async () => {
    await world.apply(ruleSpec('text/f', 'nlp/f'));
    await world.versions.put('nlp/f', {
      files: [
        { path: 'readme.md', sha256: 'a'.repeat(64), size: 1 },
        { path: 'b.md', sha256: 'b'.repeat(64), size: 1 },
      ],
    });
    await converge();
    expect(await world.states('text/f')).toEqual(['1 failed']);
    expect((await world.endpoint('text/f')).status.message).toContain('the files do not tell the platform');
    await world.versions.put('nlp/f');
    await converge();
    expect(await world.states('text/f')).toEqual(['2 ready']);
  });

  it('a whole Triton folder is served with its own configuration, and a bad one fails with line and column', async () => {
    const folder = (text: string) => {
      const sha256 = sha256Hex(text);
      world.versions.texts.set(sha256, text);
      return [
        { path: '1/model.onnx', sha256: 'c'.repeat(64), size: 1 },
        { path: 'config.pbtxt', sha256, size: text.length },
      ];
    };
    await world.apply(ruleSpec('text/folder', 'nlp/folder'));
    await world.versions.put('nlp/folder', { files: folder('platform: "onnxruntime_onnx"\nmax_batch_size: 8') });
    await converge();
    const [model] = Object.entries(agent.desired)
      .filter(([name]) => name.startsWith('folder-v1-'))
      .map(([, one]) => one);
    expect(model).toMatchObject({
      files: [{ path: '1/model.onnx' }],
      engine: { platform: 'onnxruntime_onnx', maxBatchSize: 8, inputs: [{ name: 'x', dims: [4] }] },
    });
    await world.versions.put('nlp/folder', { files: folder('platform: "onnxruntime_onnx"\nno_such_field: 1') });
    await converge();
    expect(await world.states('text/folder')).toEqual(['2 failed', '1 ready']);
    expect((await world.endpoint('text/folder')).status.message).toContain('config.pbtxt of the version, ');
  });

  it('weights share traffic among versions, and only among those that can serve', async () => {
    const model = { project: 'nlp', name: 'g', maxVersions: 3 };
    await world.apply(
      ruleSpec('text/g', 'nlp/g', { model, traffic: { mode: 'weighted', weights: { '1': 90, '2': 10 } } }),
    );
    await world.versions.put('nlp/g');
    await converge();
    expect(router.arms('text/g')).toEqual(['1 1']);
    await world.versions.put('nlp/g');
    await world.versions.put('nlp/g');
    await converge();
    expect(router.arms('text/g')).toEqual(['2 0.1', '1 0.9']);
    expect(router.versions('text/g')).toEqual([3, 2, 1]);
    await world.apply(ruleSpec('text/g', 'nlp/g', { model, traffic: { mode: 'weighted', newestFirst: [1, 3] } }));
    await converge();
    expect(router.arms('text/g')).toEqual(['3 0.25', '2 0.75']);
  });

  it('a removed endpoint leaves the table first and the servers afterwards', async () => {
    await world.apply(ruleSpec('text/h', 'nlp/h'));
    await world.versions.put('nlp/h');
    await converge();
    await world.get(EndpointService).remove(operator, 'text/h');
    await world.settle();
    expect(agent.models).toContain('h-v1');
    await router.poll();
    expect(router.table!.endpoints['text/h']).toBeUndefined();
    expect(router.table!.confirmed).toBe(true);
    await agent.sync();
    expect(agent.models).toContain('h-v1'); // the router has not acknowledged yet
    await converge();
    expect(agent.models).not.toContain('h-v1');
    await expect(world.endpoint('text/h')).rejects.toMatchObject({ code: 'not_found' });
    await world.apply(ruleSpec('text/h', 'nlp/h'));
    expect((await world.endpoint('text/h')).generation).toBe(3);
    await converge();
    expect(router.arms('text/h')).toEqual(['1 1']);
  });

  it('nothing changes without a change: no new revision, no new row', async () => {
    await converge();
    const before = await world.database.query('select id, revision from documents order by id');
    const noted = world.noted.length;
    for (const name of await world.get(FanOutReconcile).someEndpoints(1_000))
      await world.get(WorkStore).enqueue(null, 'endpoint', name);
    await world.get(WorkStore).enqueue(null, 'routing-table', 'all');
    await converge();
    expect(await world.database.query('select id, revision from documents order by id')).toEqual(before);
    expect(world.noted.slice(noted)).toEqual([]);
  });

  it('one change among many costs one change: one route in the table, one model in the document', async () => {
    for (let n = 0; n < 12; n += 1) {
      await world.versions.put(`many/m${n}`);
      await world.apply(ruleSpec(`many/e${n}`, `many/m${n}`));
    }
    await converge();
    const changed = async (document: string, after: number) =>
      (
        await world.database.query(
          'select section, key, value is null as gone from document_entries where document_id = $1 and revision > $2 order by 1, 2',
          [document, after],
        )
      ).map(
        ({ section, key, gone }) => `${section} ${String(key).replace(/-[0-9a-f]{12}$/, '')}${gone ? ' gone' : ''}`,
      );
    const table = router.table!.revision;
    const desired = agent.revision;
    await world.versions.put('many/m5');
    await converge();
    expect(await changed('routing-table', table)).toEqual(['endpoints many/e5']);
    expect(await changed(`server/${agent.id}`, desired)).toEqual(['models m5-v1 gone', 'models m5-v2']);
  });
});
