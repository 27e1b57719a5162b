import { randomUUID } from 'node:crypto';
import { accessGarbage } from '@perch/access';
import { endpointGarbage } from '@perch/endpoints';
import { fleetGarbage, PlacementStore } from '@perch/fleet';
import { collectRows, type GarbageRule, Transactions, workGarbage } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, ruleSpec } from '../support/fleet.ts';

const rules = new Map(
  [...endpointGarbage, ...fleetGarbage, ...accessGarbage, ...workGarbage].map((rule) => [rule.kind, rule]),
);
const rule = (kind: string): GarbageRule => rules.get(kind)!;

let world: FleetWorld;
let agent: FakeAgent;
let router: FakeRouter;
beforeAll(async () => {
  world = await FleetWorld.start();
  agent = await world.agent('s1');
  router = await world.router('r1');
  await world.versions.put('gc/a');
  await world.apply(ruleSpec('gc/a', 'gc/a'));
  await world.converge([agent], [router]);
});
afterAll(() => world.close());

const yesterday = () => new Date(Date.now() - 24 * 3_600_000);
const collect = (kind: string, dryRun = false, before = yesterday()) =>
  world.get(Transactions).run((tx) => collectRows(tx, rule(kind), before, dryRun));
const old = (table: string, column: string, where = 'true', ago = '9 days') =>
  world.database.query(`update ${table} set ${column} = now() - interval '${ago}' where ${where}`);

async function until(look: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 10_000; !(await look()); )
    if (Date.now() > deadline) throw new Error('not within 10 s');
}

describe('rows that nobody needs', () => {
  it('takes nothing from an installation at work, however old it is', async () => {
    await old('installation', 'watching_since', 'true', '30 days');
    for (const [table, column] of [
      ['deployments', 'since'],
      ['triton_models', 'described_at'],
      ['servers', 'last_seen_at'],
      ['documents', 'published_at'],
    ] as const)
      await old(table, column);
    for (const kind of ['deployments', 'triton models', 'servers', 'documents', 'counts'])
      expect([kind, (await collect(kind)).count]).toEqual([kind, 0]);
  });

  it('takes lost servers that hold nothing after a week, with their documents, and leaves adopted ones', async () => {
    const gone = await world.agent('gone');
    await old('servers', 'last_seen_at', `id = '${gone.id}'`);
    expect((await collect('servers')).count).toBe(0); // silent, not lost
    await world.database.query(`update servers set presence = 'lost' where id in ('${gone.id}', '${agent.id}')`);
    expect(await collect('servers', true)).toMatchObject({ count: 1, examples: ['default/gone'] }); // the other one holds models
    await old('installation', 'watching_since', 'true', '1 day');
    expect((await collect('servers')).count).toBe(0); // nobody was watching for long enough
    await old('installation', 'watching_since', 'true', '30 days');
    await world.database.query(`update servers set mode = 'adopt' where id = '${gone.id}'`);
    expect((await collect('servers')).count).toBe(0); // a person registered it
    await world.database.query(`update servers set mode = null where id = '${gone.id}'`);
    expect((await collect('servers')).count).toBe(1);
    await old('documents', 'published_at');
    expect(await collect('documents')).toMatchObject({ count: 1, examples: [`server/${gone.id}`] });
    await world.database.query(`update servers set presence = 'live' where id = '${agent.id}'`);
    await agent.sync();
  });

  it('takes routers that were forgotten, or silent for a week, with their counts', async () => {
    const [forgotten, silent] = [await world.router('forgotten'), await world.router('silent')];
    await world.database.query(
      `insert into router_stats (router_id, endpoint, version, boot_id, requests, errors, retries, latency)
       values ('${silent.id}', 'gc/a', 1, 'b', 1, 0, 0, '{}'), ('${router.id}', 'gc/removed', 1, 'b', 1, 0, 0, '{}')`,
    );
    await old('routers', 'forgotten_at', `id = '${forgotten.id}'`, '2 days');
    await old('routers', 'last_seen_at', `id = '${silent.id}'`);
    expect(await collect('routers')).toMatchObject({ count: 2 });
    await old('router_stats', 'at');
    expect(await collect('counts')).toMatchObject({ count: 1, examples: ['gc/removed version 1'] });
    expect((await world.database.query('select count(*)::integer as n from router_stats'))[0]!['n']).toBe(0);
  });

  it('takes retired deployments, then the descriptions of what they loaded', async () => {
    await world.versions.put('gc/a');
    await world.converge([agent], [router]);
    await old('deployments', 'since');
    await old('triton_models', 'described_at');
    expect(await collect('triton models', true)).toMatchObject({ count: 1 });
    expect(await collect('deployments')).toMatchObject({ count: 1, examples: ['gc/a version 1'] });
    expect((await collect('triton models')).examples[0]).toMatch(/^a-v1-/);
    await world.converge([agent], [router]);
    expect((await world.endpoint('gc/a')).status).toMatchObject({ phase: 'ready', servingVersions: [2] });
  });

  it('keeps a description that a new deployment takes up at the same time', async () => {
    const [row] = await world.database.query('select name, body from triton_models limit 1');
    const name = `b-v1-${randomUUID().replaceAll('-', '').slice(0, 12)}`;
    const { body } = row as { body: never };
    const transactions = world.get(Transactions);
    const describeIt = () => transactions.run((tx) => world.get(PlacementStore).describeModel(tx, name, body));
    await describeIt();
    await old('triton_models', 'described_at', `name = '${name}'`);
    let collected: Promise<unknown> = Promise.resolve();
    await transactions.run(async (tx) => {
      await world.get(PlacementStore).describeModel(tx, name, body);
      collected = collect('triton models'); // waits for the row, and sees that it is young again
      await until(async () => (await world.database.query('select 1 from pg_locks where not granted')).length > 0);
    });
    expect(await collected).toMatchObject({ count: 0 });
    await old('triton_models', 'described_at', `name = '${name}'`);
    expect(await collect('triton models')).toMatchObject({ count: 1, examples: [name] });
    await describeIt();
  });

  it('takes old events, kept answers past their time, and work that nobody takes', async () => {
    await world.database.query(
      `insert into outbox (type, subject, data, at) values ('a.b', 'old', '{}', now() - interval '2 days'), ('a.b', 'new', '{}', now());
       insert into idempotency_keys (actor, key, request_hash, ticket, state, expires_at)
         values ('a', 'over', '', gen_random_uuid(), 'running', now() - interval '2 days'), ('a', 'on', '', gen_random_uuid(), 'running', now() + interval '1 day');
       insert into work (kind, key, next_at) values ('of-another-age', 'x', now() - interval '2 days')`,
    );
    expect(await collect('events')).toMatchObject({ count: 1, examples: ['a.b old'] });
    expect(await collect('kept answers')).toMatchObject({ count: 1, examples: ['over'] });
    expect(await collect('work')).toMatchObject({ count: 1, examples: ['of-another-age x'] });
  });
});
