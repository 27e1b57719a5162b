import { EndpointService } from '@perch/endpoints';
import { EnrolmentService, Installation, RouterService, ServerService, SweepReconcile } from '@perch/fleet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

let world: FleetWorld;
let agent: FakeAgent;
let router: FakeRouter;
const start = async () => {
  world = await FleetWorld.start();
  agent = await world.agent('s1');
  router = await world.router('r1');
};
const converge = (agents = [agent], routers = [router]) => world.converge(agents, routers);

describe('a database that went back in time', () => {
  beforeEach(start);
  afterEach(() => world.close());

  it('an older dump unloads nothing by itself; requests go on; a person confirms', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { model: { project: 'nlp', name: 'a', maxVersions: 2 } }));
    await world.versions.put('nlp/a');
    await converge();
    const before = await world.get(Installation).current();
    const restore = await world.dump();
    await world.versions.put('nlp/a');
    await world.versions.put('nlp/a');
    await converge();
    expect(agent.models).toEqual(['a-v2', 'a-v3']);

    await restore();
    await converge();
    const after = await world.get(Installation).current();
    expect(after).toMatchObject({ confirmed: false, pastLineages: [before.lineage] });
    expect(agent).toMatchObject({ lineage: after.lineage, confirmed: false });
    expect(router.table).toMatchObject({ lineage: after.lineage, confirmed: false });
    expect(agent.models).toEqual(['a-v1', 'a-v2', 'a-v3']);
    expect(world.noted.filter(({ action }) => action === 'installation.went-back')).toHaveLength(1);

    await world.get(Installation).confirm(operator);
    await converge();
    expect(agent.confirmed).toBe(true);
    expect(router.table!.confirmed).toBe(true);
    expect(agent.models).toEqual(['a-v1']);
  });

  it('is found out even when it has published newer revisions before anybody asked', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { model: { project: 'nlp', name: 'a', maxVersions: 2 } }));
    await world.versions.put('nlp/a');
    await converge();
    const restore = await world.dump();
    await world.versions.put('nlp/a');
    await converge();
    await restore();
    await world.database.query('update documents set revision = revision + 1000');
    const other = await world.agent('s2');
    await other.report();
    await world.apply(ruleSpec('text/b', 'nlp/a', { fleet: { replicas: 2 }, engine: { maxBatchSize: 2 } }));
    await converge([other], []);
    expect((await world.get(Installation).current()).confirmed).toBe(true);
    await converge([agent, other]);
    expect((await world.get(Installation).current()).confirmed).toBe(false);
    expect(agent.models).toContain('a-v2');
  });

  it('a server that followed us and is not known any more starts a new lineage too', async () => {
    const restore = await world.dump();
    const late = await world.agent('s2');
    await converge([agent, late]);
    const { lineage } = await world.get(Installation).current();
    await restore();
    await expect(world.get(ServerService).authenticate('pt_whatever')).rejects.toMatchObject({
      code: 'unauthenticated',
    });
    await late.enrol(late.lineage);
    const after = await world.get(Installation).current();
    expect(after.confirmed).toBe(false);
    expect(after.lineage).not.toBe(lineage);
  });

  it('an unknown lineage starts a new one once, a past one of ours does not', async () => {
    const { lineage } = await world.get(Installation).current();
    const foreign = '00000000-0000-4000-8000-000000000001';
    await router.enrol(foreign);
    const rotated = await world.get(Installation).current();
    expect(rotated).toMatchObject({ confirmed: false });
    expect(new Set(rotated.pastLineages)).toEqual(new Set([foreign, lineage]));
    await router.enrol(foreign);
    await router.enrol(lineage);
    expect((await world.get(Installation).current()).lineage).toBe(rotated.lineage);
  });

  it('rows that vanish without a decision make the document unconfirmed', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await world.apply(ruleSpec('text/b', 'nlp/b'));
    await world.versions.put('nlp/a');
    await world.versions.put('nlp/b');
    await converge();
    expect(agent.models).toEqual(['a-v1', 'b-v1']);
    await world.database.query(`delete from placements where triton_model like 'a-v1-%'`);
    await world.database.query('insert into work (kind, key) values ($1, $2) on conflict do nothing', [
      'server',
      agent.id,
    ]);
    await world.settle();
    await agent.sync();
    expect(agent.confirmed).toBe(false);
    expect(agent.models).toEqual(['a-v1', 'b-v1']);
  });
});

describe('routers and unloading', () => {
  beforeEach(start);
  afterEach(() => world.close());

  const replaceVersion = async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await world.versions.put('nlp/a');
    await converge();
    await world.versions.put('nlp/a');
  };

  it('a router that is silent holds back an unload until it is forgotten', async () => {
    await replaceVersion();
    await converge([agent], []);
    expect(await world.states('text/a')).toEqual(['2 ready', '1 draining']);
    expect(agent.models).toEqual(['a-v1', 'a-v2']);
    await world.get(RouterService).forget(operator, router.id);
    await converge([agent], []);
    expect(agent.models).toEqual(['a-v2']);
    await expect(world.get(RouterService).forget(operator, router.id)).rejects.toMatchObject({ code: 'not_found' });
    await expect(world.get(RouterService).forget(operator, 'nobody')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('a router that was silent for longer than the grace holds back nothing', async () => {
    await replaceVersion();
    await converge([agent], []);
    await world.database.query(`update routers set last_seen_at = now() - interval '11 minutes'`);
    await world.database.query(
      `update installation set watching_since = now() - interval '1 hour', servers_watched_since = now() - interval '1 hour'`,
    );
    await converge([agent], []);
    expect(agent.models).toEqual(['a-v2']);
  });

  it.each(['after', 'before'])(
    'silence counts only from when somebody began to watch, %s the first sweep',
    async (when) => {
      await replaceVersion();
      await converge([agent], []);
      await world.database.query(`update routers set last_seen_at = now() - interval '11 minutes'`);
      await world.database.query(
        `update installation set last_sweep_at = now() - interval '11 minutes', watching_since = now() - interval '1 hour'`,
      );
      if (when === 'after') await world.get(SweepReconcile).sweep();
      await converge([agent], []);
      expect(agent.models).toEqual(['a-v1', 'a-v2']);
      expect((await world.get(ServerService).list())[0]!.live).toBe(true);
    },
  );

  it.each([
    ['the control plane was away for a moment', 6, true],
    ['it was there', 3, false],
  ])('a server without a word for 12 s: %s', async (_what, unswept, live) => {
    const hour = `now() - interval '1 hour'`;
    await world.database.query(`update servers set last_seen_at = now() - interval '12 seconds'`);
    await world.database.query(
      `update installation set last_sweep_at = now() - interval '${unswept} seconds', watching_since = ${hour}, servers_watched_since = ${hour}`,
    );
    await world.get(SweepReconcile).sweep();
    expect((await world.get(ServerService).list())[0]!.live).toBe(live);
  });

  it('a router that holds an unconfirmed table back, or enrolled a moment ago, holds back an unload', async () => {
    await replaceVersion();
    router.held = true;
    await converge();
    expect(agent.models).toEqual(['a-v1', 'a-v2']);
    router.held = false;
    const second = await world.router('r2');
    await converge();
    expect(agent.models).toEqual(['a-v1', 'a-v2']);
    await converge([agent], [router, second]);
    expect(agent.models).toEqual(['a-v2']);
  });

  it('a version that comes back while it drains goes on serving', async () => {
    await replaceVersion();
    await converge([agent], []);
    await world.versions.change('nlp/a', 2, { state: 'archived' });
    await converge();
    expect(await world.states('text/a')).toEqual(['1 ready']);
    expect(router.arms('text/a')).toEqual(['1 1']);
    expect(agent.models).toEqual(['a-v1']);
  });
});

describe('several servers', () => {
  beforeEach(start);
  afterEach(() => world.close());

  it('a deployment serves from minReplicas ready servers on, and only those are in the table', async () => {
    const second = await world.agent('s2');
    await world.apply(ruleSpec('text/a', 'nlp/a', { fleet: { replicas: 2, minReplicas: 2 } }));
    await world.apply(ruleSpec('text/one', 'nlp/a', { fleet: { replicas: 2 } }));
    await world.versions.put('nlp/a');
    second.behaviour.set('a-v1-', 'loading');
    await converge([agent, second]);
    expect(await world.states('text/a')).toEqual(['1 loading']);
    expect(router.versions('text/a')).toEqual([]);
    expect(router.table!.endpoints['text/one']!.targets[0]!.servers).toEqual([agent.id]);
    second.behaviour.clear();
    await converge([agent, second]);
    expect(router.table!.endpoints['text/a']!.targets[0]!.servers).toEqual([agent.id, second.id].sort());
    expect(router.table!.endpoints['text/one']!.targets[0]!.servers).toHaveLength(2);
    expect(Object.keys(router.table!.servers).sort()).toEqual([agent.id, second.id].sort());
  });

  it('while another version serves, the next one takes over when all its servers are done with it', async () => {
    const second = await world.agent('s2');
    await world.apply(ruleSpec('text/a', 'nlp/a', { fleet: { replicas: 2 } }));
    await world.versions.put('nlp/a');
    await converge([agent, second]);
    second.behaviour.set('a-v2-', 'loading');
    await world.versions.put('nlp/a');
    await converge([agent, second]);
    expect(router.arms('text/a')).toEqual(['1 1']);
    second.behaviour.set('a-v2-', 'bad bytes');
    await converge([agent, second]);
    expect(router.arms('text/a')).toEqual(['2 1']);
  });

  it('more replicas than servers: serves with what there is, says so, and grows when a server joins', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { fleet: { replicas: 2 } }));
    await world.versions.put('nlp/a');
    await converge();
    expect((await world.endpoint('text/a')).status).toMatchObject({ phase: 'progressing', reason: 'too_few_servers' });
    expect(router.arms('text/a')).toEqual(['1 1']);
    const second = await world.agent('s2');
    await converge([agent, second]);
    expect((await world.endpoint('text/a')).status.phase).toBe('ready');
    expect(router.table!.endpoints['text/a']!.targets[0]!.servers).toHaveLength(2);
  });

  it('without a server in its pool an endpoint is blocked and says why', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { fleet: { pool: 'gpu' } }));
    await world.versions.put('nlp/a');
    await converge();
    expect((await world.endpoint('text/a')).status).toMatchObject({ phase: 'blocked', reason: 'no_server' });
    const gpu = await world.agent('g1', 'gpu');
    await converge([agent, gpu]);
    expect((await world.endpoint('text/a')).status.phase).toBe('ready');
  });

  it('another pool serves before the old one is left', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { limits: { timeoutMs: 1 } }));
    await world.versions.put('nlp/a');
    await converge();
    const gpu = await world.agent('g1', 'gpu');
    gpu.behaviour.set('a-', 'loading');
    await world.apply(ruleSpec('text/a', 'nlp/a', { fleet: { pool: 'gpu' }, limits: { timeoutMs: 1 } }));
    await converge([agent, gpu]);
    expect(router.table!.endpoints['text/a']!.targets[0]!.servers).toEqual([agent.id]);
    gpu.behaviour.clear();
    await converge([agent, gpu]);
    expect(router.table!.endpoints['text/a']!.targets[0]!.servers).toEqual([gpu.id]);
    expect(agent.models).toEqual([]);
  });

  it('a lost server loses what was placed on it once others serve it, and a lone lost one keeps its routes', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { limits: { timeoutMs: 1 } }));
    await world.versions.put('nlp/a');
    await converge();
    const lose = async () => {
      await world.database.query(`update servers set last_seen_at = now() - interval '11 minutes' where id = $1`, [
        agent.id,
      ]);
      await world.database.query(
        `update installation set watching_since = now() - interval '1 hour', servers_watched_since = now() - interval '1 hour'`,
      );
      await world.get(SweepReconcile).sweep();
      await converge([]);
    };
    await lose();
    expect(router.table!.endpoints['text/a']!.targets[0]!.servers).toEqual([agent.id]);
    const second = await world.agent('s2');
    await converge([second]);
    expect(router.table!.endpoints['text/a']!.targets[0]!.servers).toEqual([second.id]);
    expect(router.table!.servers[agent.id]).toBeUndefined();
    await converge([agent, second]);
    expect(agent.models).toEqual([]);
    expect(agent.confirmed).toBe(true);
  });

  it('a model server that is down is no news about its models; one that restarts keeps its routes', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await world.versions.put('nlp/a');
    await converge();
    const before = router.table!.revision;
    agent.tritonLive = false;
    await agent.report();
    await converge([]);
    agent.tritonLive = true;
    agent.behaviour.set('a-', 'loading');
    await converge();
    agent.behaviour.clear();
    await converge();
    expect(router.table!.revision).toBe(before);
    expect(await world.states('text/a')).toEqual(['1 ready']);
  });

  it('an agent that enrols again is the same server, and its old token is worth nothing', async () => {
    const grant = { joins: 'server' as const, pool: 'default' };
    const request = {
      kind: 'server' as const,
      name: 's9',
      labels: { zone: 'a' },
      http: 'h:1',
      grpc: 'h:2',
      previousLineage: null,
    };
    const enrol = () => world.get(EnrolmentService).enrol(grant, request);
    const first = await enrol();
    const second = await enrol();
    expect(second.id).toBe(first.id);
    await expect(world.get(ServerService).authenticate(first.token)).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(await world.get(ServerService).authenticate(second.token)).toBe(first.id);
    await expect(world.get(EnrolmentService).enrol({ joins: 'router', pool: null }, request)).rejects.toMatchObject({
      code: 'forbidden',
    });
    const [row] = await world.database.query('select token_hash from servers where id = $1', [first.id]);
    expect(row!['token_hash']).toMatch(/^[0-9a-f]{64}$/);
    expect(row!['token_hash']).not.toContain(second.token);
  });

  it('a server that moved is found at its new address at once', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await world.versions.put('nlp/a');
    await converge();
    const address = { http: 'elsewhere:1', grpc: 'elsewhere:2' };
    await world.get(ServerService).observed(agent.id, { bootId: 'b2', hash: 'x', address });
    await world.settle();
    await router.poll();
    expect(router.table!.servers[agent.id]).toEqual(address);
  });

  it('a heartbeat asks for the whole report when it does not know the state', async () => {
    const servers = world.get(ServerService);
    expect(await servers.observed(agent.id, { bootId: 'b1', hash: 'h' })).toEqual({ needReport: true });
    await agent.report();
    const [row] = await world.database.query('select observed_hash from servers where id = $1', [agent.id]);
    expect(await servers.observed(agent.id, { bootId: 'b1', hash: row!['observed_hash'] })).toEqual({
      needReport: false,
    });
    expect(await servers.observed(agent.id, { bootId: 'b2', hash: row!['observed_hash'] })).toEqual({
      needReport: true,
    });
  });

  it('the hashes a server or router may ask for are those of its document', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await world.versions.put('nlp/a');
    await converge();
    const [model, tokenizer] = world.versions.versions[0]!.files;
    const hashes = [model!.sha256, tokenizer!.sha256, 'f'.repeat(64)];
    expect(await world.get(ServerService).desiredHashes(agent.id, hashes)).toEqual(new Set([model!.sha256]));
    expect(await world.get(RouterService).tableHashes(hashes)).toEqual(new Set([tokenizer!.sha256]));
    await world.get(EndpointService).remove(operator, 'text/a');
    await converge();
    expect(await world.get(ServerService).desiredHashes(agent.id, hashes)).toEqual(new Set());
    expect(await world.get(RouterService).tableHashes(hashes)).toEqual(new Set());
  });
});
