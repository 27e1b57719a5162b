import { setTimeout as pause } from 'node:timers/promises';
import { AuditService, ChangeService, IdempotencyService, OutboxService } from '@perch/access';
import { type ChangeEvent, systemActor } from '@perch/contracts';
import { Transactions, WorkStore } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adminKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';

let plane: TestControlPlane;
beforeAll(async () => {
  plane = await startTestControlPlane();
});
afterAll(() => plane.close());

const change = (subject: string, detail: Record<string, unknown> = {}, action = 'test.change') =>
  plane.app
    .get(Transactions)
    .run((tx) => plane.app.get(ChangeService).record(tx, systemActor, action, subject, detail));
const verify = async () => (await plane.call('GET', '/api/v1/audit/verify')).body;

/** Follows /api/v1/events until closed. */
async function follow(path = '/api/v1/events', key = adminKey, headers: Record<string, string> = {}) {
  const gone = new AbortController();
  const response = await fetch(plane.address + path, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    signal: gone.signal,
  });
  const events: ChangeEvent[] = [];
  let text = '';
  const reading = (async () => {
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString();
      const blocks = text.split('\n\n');
      text = blocks.pop()!;
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data && !block.includes('event: gap')) events.push(JSON.parse(data));
        if (block.includes('event: gap')) events.push({ type: 'gap' } as ChangeEvent);
      }
    }
  })();
  reading.catch(() => undefined);
  return {
    events,
    subjects: () => events.map((event) => event.subject),
    status: response.status,
    type: response.headers.get('content-type'),
    ended: reading,
    close: () => gone.abort(),
  };
}

describe('the audit log', () => {
  it('has a row for each change, by whom, and an intact chain over hard content', async () => {
    await change('plain');
    await change('hard "quoted" \\ \n\t\u0001 ünïcödé 🐦', {
      text: 'a\u0000b\ud800',
      nested: [{ n: 1e21 }],
      gone: undefined,
    });
    const { body: made } = await plane.call('POST', '/api/v1/keys', { name: 'x', role: 'viewer' });
    const { body } = await plane.call('GET', '/api/v1/audit?limit=1');
    expect(body.items[0]).toMatchObject({
      action: 'key.create',
      subject: made.id,
      actor: 'bootstrap (pk_bootstrap)',
      detail: { name: 'x', role: 'viewer' },
    });
    expect(JSON.stringify(body)).not.toContain(made.secret);
    expect(await verify()).toEqual({ intact: true, rows: body.items[0].id, fault: null });
    const older = await plane.call('GET', `/api/v1/audit?limit=1&cursor=${body.nextCursor}`);
    expect(older.body.items[0].id).toBe(body.items[0].id - 1);
    expect(older.body.items[0].hash).toBe(body.items[0].previousHash);
  });

  it('rows of one moment are chained one after the other, and a change that is rolled back leaves none', async () => {
    const before = (await verify()).rows;
    await Promise.all(Array.from({ length: 20 }, (_, n) => change(`at once ${n}`)));
    const failed = plane.app.get(Transactions).run(async (tx) => {
      await plane.app.get(ChangeService).record(tx, systemActor, 'test.change', 'rolled back', {});
      throw new Error('on purpose');
    });
    await expect(failed).rejects.toThrow('on purpose');
    expect(await verify()).toEqual({ intact: true, rows: before + 20, fault: null });
    const rows = await plane.database.query(`select 1 from audit_log where subject = 'rolled back'`);
    expect(rows).toEqual([]);
  });

  it('is checked in pieces', async () => {
    expect(await plane.app.get(AuditService).verify(7)).toMatchObject({ intact: true });
  });

  it('refuses changes, and shows those that somebody forced', async () => {
    const { query } = plane.database;
    await expect(query(`update audit_log set actor = 'nobody' where id = 2`)).rejects.toThrow('never changed');
    await expect(query('delete from audit_log where id = 2')).rejects.toThrow('never changed');
    await expect(query('truncate audit_log')).rejects.toThrow('never changed');

    const force = async (sql: string) => {
      await query('alter table audit_log disable trigger user');
      await query(sql);
      await query('alter table audit_log enable trigger user');
    };
    const [{ detail, actor }] = (await query('select detail::text, actor from audit_log where id = 2')) as [
      Record<string, string>,
    ];
    await force(`update audit_log set detail = '{"forged": true}' where id = 2`);
    expect((await verify()).fault).toEqual({ id: 2, reason: 'the content of row 2 is not what was recorded' });
    await force(`update audit_log set detail = '${detail}', actor = 'nobody' where id = 2`);
    expect((await verify()).fault).toMatchObject({ id: 2 });
    await force(`update audit_log set actor = '${actor}' where id = 2`);
    expect((await verify()).intact).toBe(true);

    const { rows } = await verify();
    await query(`create table cut_off as select * from audit_log where id = ${rows}`);
    await force(`delete from audit_log where id = ${rows}`);
    expect((await verify()).fault).toEqual({ id: rows, reason: `the rows from ${rows} to ${rows} are missing` });
    await force('insert into audit_log overriding system value select * from cut_off');
    expect((await verify()).intact).toBe(true);
  });
});

describe('events', () => {
  it('come as they happen, each with its number', async () => {
    const feed = await follow();
    expect(feed.status).toBe(200);
    expect(feed.type).toContain('text/event-stream');
    await change('live', { a: 1 });
    await expect.poll(feed.subjects).toEqual(['live']);
    expect(feed.events[0]).toMatchObject({ type: 'test.change', data: { a: 1 }, id: expect.any(Number) });
    feed.close();
  });

  it('go on after the last one seen, and none is missed or doubled under load', async () => {
    const start = await plane.app.get(OutboxService).latest();
    const feed = await follow('/api/v1/events', adminKey, { 'last-event-id': String(start) });
    const wanted = Array.from({ length: 60 }, (_, n) => `load ${n}`);
    const slow = plane.app.get(Transactions).run(async (tx) => {
      await plane.app.get(ChangeService).record(tx, systemActor, 'test.change', 'began first, ended last', {});
      await Promise.all(wanted.map((subject) => change(subject)));
    });
    await slow;
    await expect.poll(() => feed.events.length).toBe(61);
    expect(feed.subjects().slice(0, 60).sort()).toEqual(wanted.sort());
    expect(feed.subjects()[60]).toBe('began first, ended last');
    const numbers = feed.events.map((event) => event.id);
    expect(numbers).toEqual(numbers.map((_, index) => start + 1 + index));
    feed.close();

    const middle = numbers[30]!;
    const resumed = await follow('/api/v1/events', adminKey, { 'last-event-id': String(middle) });
    await expect.poll(() => resumed.events.map((event) => event.id)).toEqual(numbers.slice(31));
    resumed.close();
  });

  it('tell whoever was away too long that there is a gap', async () => {
    const outbox = plane.app.get(OutboxService);
    const first = await follow('/api/v1/events?after=0');
    await expect.poll(() => first.events.length).toBeGreaterThan(60);
    expect(first.events[0]!.type).not.toBe('gap');
    first.close();
    await plane.database.query(`update outbox set at = now() - interval '2 days' where id <= 5`);
    expect(await outbox.sweep(24 * 3_600_000)).toBe(5);
    const behind = await follow('/api/v1/events?after=3');
    await expect.poll(() => behind.events[0]?.type).toBe('gap');
    await expect.poll(() => behind.events[1]?.id).toBe(6);
    behind.close();
    const ahead = await follow('/api/v1/events?after=999999999');
    await change('after the restore');
    await expect
      .poll(() => ahead.events.map((event) => event.subject ?? event.type))
      .toEqual(['gap', 'after the restore']);
    ahead.close();
    const bad = await plane.call('GET', '/api/v1/events', undefined, { headers: { 'last-event-id': 'x' } });
    expect(bad.body.detail).toContain('Last-Event-ID: wants the number');
  });

  it('are shown to those who may see their subject', async () => {
    const { body } = await plane.call('POST', '/api/v1/keys', { name: 'nlp', role: 'viewer', projects: ['nlp'] });
    const feed = await follow('/api/v1/events', body.secret);
    await change('cv/resnet/1', {}, 'version.publish');
    await plane.call('POST', '/api/v1/keys', { name: 'hidden', role: 'viewer' });
    await change('nlp/minilm/1', {}, 'version.publish');
    await expect.poll(feed.subjects).toEqual(['nlp/minilm/1']);
    feed.close();
  });
});

describe('a request sent twice with one Idempotency-Key', () => {
  const files = [{ path: 'model.onnx', sha256: 'a'.repeat(64), size: 3 }];
  const create = (key: string, model: string, description = '') =>
    plane.call(
      'POST',
      `/api/v1/models/nlp/${model}/versions`,
      { files, description },
      { headers: { 'idempotency-key': key } },
    );
  const versions = () =>
    plane.database.query('select count(*)::int as n from audit_log where action = $1', ['version.create']);

  it('is done once and answered the same', async () => {
    const first = await create('k1', 'once');
    expect(first.status).toBe(201);
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    const before = await versions();
    const again = await create('k1', 'once');
    expect(again.status).toBe(201);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(again.body).toEqual(first.body);
    expect(await versions()).toEqual(before);
  });

  it('is a conflict when it is another request', async () => {
    await create('k2', 'other');
    const other = await create('k2', 'other', 'changed');
    expect([other.status, other.body.code]).toEqual([409, 'conflict']);
    expect(other.body.detail).toContain('Idempotency-Key k2 came before with another request');
  });

  it('runs again when it failed before, and keys of different callers never meet', async () => {
    const bad = await plane.call(
      'POST',
      '/api/v1/models/nlp/fails/versions',
      { files: [] },
      { headers: { 'idempotency-key': 'k3' } },
    );
    expect(bad.status).toBe(400);
    expect((await create('k3', 'fails')).status).toBe(201);
    const { body } = await plane.call('POST', '/api/v1/keys', { name: 'p', role: 'publisher' });
    const foreign = await plane.call(
      'POST',
      '/api/v1/models/nlp/mine/versions',
      { files },
      { key: body.secret, headers: { 'idempotency-key': 'k3' } },
    );
    expect(foreign.headers.get('idempotency-replayed')).toBeNull();
    expect(foreign.status).toBe(201);
  });

  it('runs in one place when many come at once', async () => {
    const service = plane.app.get(IdempotencyService);
    let runs = 0;
    const work = async () => {
      runs += 1;
      await pause(100);
      return { status: 201, answer: { runs } };
    };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => service.once({ actor: 'a', key: 'many' }, { x: 1 }, { run: work })),
    );
    expect(runs).toBe(1);
    expect(answers.filter((answer) => !answer.replayed)).toHaveLength(1);
    expect(answers.every((answer) => (answer.answer as { runs: number }).runs === 1)).toBe(true);
  });

  it('is taken over when its holder died, and refused while it still runs', async () => {
    const service = plane.app.get(IdempotencyService);
    const place = { actor: 'a', key: 'lease' };
    const times = { leaseMs: 300, keepMs: 60_000, waitMs: 50 };
    let finish = () => {};
    const held = service.once(
      place,
      {},
      { run: () => new Promise((done) => (finish = () => done({ status: 201, answer: 1 }))) },
      times,
    );
    const second = () => service.once(place, {}, { run: async () => ({ status: 201, answer: 2 }) }, times);
    const lease = () => plane.database.query(`select expires_at from idempotency_keys where key = 'lease'`);
    await expect.poll(lease).toHaveLength(1);
    const [claimed] = await lease();
    await expect.poll(async () => (await lease())[0]).not.toEqual(claimed); // renewed: its holder lives
    await expect(second()).rejects.toThrow('still runs');
    finish();
    expect(await held).toMatchObject({ answer: 1 });
    await plane.database.query(
      `update idempotency_keys set state = 'running', status = null, answer = null, expires_at = now() - interval '1 s' where key = 'lease'`,
    );
    expect(await second()).toMatchObject({ answer: 2, replayed: false });
  });

  it('makes one key, and keeps its secret nowhere', async () => {
    const make = () =>
      plane.call('POST', '/api/v1/keys', { name: 'once', role: 'viewer' }, { headers: { 'idempotency-key': 'k4' } });
    const first = await make();
    expect(first.status).toBe(201);
    const again = await make();
    expect([again.status, again.body.code]).toEqual([409, 'conflict']);
    expect(again.body.detail).toContain(`${first.body.id} was made by the first request`);
    const { items } = (await plane.call('GET', '/api/v1/keys?limit=500')).body;
    expect(items.filter((key: { name: string }) => key.name === 'once')).toHaveLength(1);
    const kept = JSON.stringify(await plane.database.query('select * from idempotency_keys'));
    expect(kept).toContain(first.body.id);
    expect(kept).not.toContain(first.body.secret);
  });

  it('is forgotten in the end', async () => {
    await plane.database.query(`update idempotency_keys set expires_at = now() - interval '1 s' where key = 'k1'`);
    expect(await plane.app.get(IdempotencyService).sweep()).toBe(1);
    expect(await plane.database.query(`select 1 from idempotency_keys where key = 'k1'`)).toEqual([]);
  });
});

describe('the sweep', () => {
  it('removes what is over, and has the routing table look at keys that ran out', async () => {
    const { body } = await plane.call('POST', '/api/v1/keys', { name: 'ends', role: 'inference' });
    const inTable = () =>
      plane.database.query(`select 1 from document_entries where section = 'keys' and key = $1 and value is not null`, [
        body.id,
      ]);
    await expect.poll(inTable).toHaveLength(1);
    await plane.database.query(`update api_keys set expires_at = now() - interval '1 s' where id = $1`, [body.id]);
    await plane.database.query(`update outbox set at = now() - interval '2 days'`);
    await plane.database.query(`update idempotency_keys set expires_at = now() - interval '1 s'`);
    const revision = () => plane.database.query(`select revision from documents where id = 'routing-table'`);
    const before = await revision();
    const work = plane.app.get(WorkStore);
    for (const key of ['answers', 'events', 'keys']) await work.enqueue(null, 'sweep', key);
    const left = async () => (await plane.database.query(`select 1 from idempotency_keys`)).length;
    await expect.poll(left).toBe(0);
    await expect.poll(async () => (await plane.database.query('select 1 from outbox')).length).toBe(0);
    await expect.poll(inTable).toEqual([]);
    expect(await revision()).not.toEqual(before);
  });
});

describe('stopping', () => {
  it('ends the streams of events and answers before it goes', async () => {
    const own = await startTestControlPlane({ database: plane.database, storeFolder: plane.storeFolder });
    const response = await fetch(`${own.address}/api/v1/events`, { headers: { authorization: `Bearer ${adminKey}` } });
    const reading = response.text();
    const started = Date.now();
    await own.close();
    expect(Date.now() - started).toBeLessThan(5_000);
    expect(await reading).toContain(': following');
  });
});
