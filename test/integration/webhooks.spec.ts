import { createHmac } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CreatedWebhook, Webhook, WebhookPayload } from '@perch/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { adminKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { scaleModel } from '../support/onnx.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

interface Received {
  headers: IncomingMessage['headers'];
  body: string;
  payload: WebhookPayload;
}

let receiver: Server;
let url: string;
let plane: TestControlPlane;
let database: TestDatabase;
let storeFolder: string;
let received: Received[] = [];
/** Status of the next answers; 200 when there are none. `hang`: no answer at all. */
let answers: (number | 'hang' | 'cut')[] = [];

beforeAll(async () => {
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    received.push({ headers: request.headers, body, payload: JSON.parse(body) });
    const answer = answers.shift() ?? 200;
    if (answer === 'hang') return;
    if (answer === 'cut') return void request.socket.destroy();
    response.writeHead(answer, answer === 302 ? { location: '/elsewhere' } : {}).end('never read');
  });
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?token=t0p`;
  database = await createTestDatabase();
  storeFolder = await mkdtemp(join(tmpdir(), 'perch-webhooks-'));
  plane = await startTestControlPlane({ database, storeFolder });
});
afterAll(async () => {
  await plane?.close();
  await database?.drop();
  await rm(storeFolder, { recursive: true, force: true });
  receiver.closeAllConnections();
  await new Promise((done) => receiver.close(done));
});
beforeEach(async () => {
  const { body } = await plane.call('GET', '/api/v1/webhooks');
  for (const { name } of body.items) await plane.call('DELETE', `/api/v1/webhooks/${name}`);
  received = [];
  answers = [];
});

const add = async (wish: Record<string, unknown> = {}) => {
  const answer = await plane.call<CreatedWebhook>('POST', '/api/v1/webhooks', { name: 'ops', url, ...wish });
  expect(answer.status).toBe(201);
  return answer.body;
};
const show = async () => (await plane.call<Webhook>('GET', '/api/v1/webhooks/ops')).body;
/** As every change does: in a transaction of its own, numbered when it is committed. */
const emit = (type: string, subject: string, data: object = {}) =>
  plane.database.query('insert into outbox (type, subject, data) values ($1, $2, $3)', [
    type,
    subject,
    JSON.stringify(data),
  ]);
const settled = () => expect.poll(async () => (await show()).pending, { timeout: 15_000 }).toBe(0);
/** The wait is real; a test need not sit through it. */
const dueNow = () => plane.database.query(`update webhooks set next_try_at = now() where name = 'ops'`);

describe('what a webhook is told', () => {
  it('is what it asked for, in order, signed, each with an id of its own', async () => {
    const { secret, events } = await add({ events: ['version.published', 'rollout.promoted', 'rollout.promoted'] });
    expect(events).toEqual(['version.published', 'rollout.promoted']);
    await emit('version.publish', 'nlp/minilm/3', { from: 'draft', to: 'published' });
    await emit('version.tag', 'nlp/minilm/3', { to: ['prod'] });
    await emit('rollout.promoted', 'text/minilm', { rollout: 'r', version: 3 });
    await expect.poll(() => received.length, { timeout: 10_000 }).toBe(2);
    expect(received.map(({ payload }) => payload)).toMatchObject([
      {
        type: 'version.published',
        subject: 'nlp/minilm/3',
        data: { model: 'nlp/minilm', version: 3, from: 'draft', to: 'published' },
      },
      { type: 'rollout.promoted', subject: 'text/minilm', data: { endpoint: 'text/minilm', rollout: 'r', version: 3 } },
    ]);
    for (const { headers, body, payload } of received) {
      const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-perch-signature']))!;
      expect(signature).toBe(createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex'));
      expect(Math.abs(Number(seconds) - Date.now() / 1_000)).toBeLessThan(60);
      expect(headers).toMatchObject({ 'x-perch-event': payload.type, 'x-perch-delivery': payload.id });
    }
    expect(new Set(received.map(({ payload }) => payload.id)).size).toBe(2);
    await settled();
    expect(await show()).toMatchObject({ deliveredTo: expect.any(Number), lastError: null, tries: 0, givenUp: 0 });
  });

  it('begins with what happens after it was added', async () => {
    await emit('rollout.started', 'before');
    await add();
    await emit('rollout.started', 'after');
    await expect.poll(() => received.map(({ payload }) => payload.subject)).toEqual(['after']);
  });

  it('fails and is tried again with the same id; what comes after it waits', async () => {
    answers = [500, 'cut'];
    await add();
    await emit('rollout.step', 'a');
    await emit('rollout.step', 'b');
    await expect.poll(async () => (await show()).tries).toBe(1);
    expect(await show()).toMatchObject({ pending: 2, lastError: 'answered 500', deliveredTo: null });
    expect(Date.parse((await show()).nextTryAt!)).toBeGreaterThan(Date.now() - 1_000);
    await expect.poll(async () => (await show()).tries, { timeout: 5_000 }).toBe(2);
    await dueNow();
    await settled();
    expect(received.map(({ payload }) => payload.subject)).toEqual(['a', 'a', 'a', 'b']);
    expect(new Set(received.slice(0, 3).map(({ headers }) => headers['x-perch-delivery'])).size).toBe(1);
    expect((await show()).lastError).toBeNull();
  });

  it('is given up when the receiver refuses it five times, which is shown, and the next one is told', async () => {
    answers = [400, 302, 400, 400, 404];
    await add();
    await emit('rollout.held', 'bad');
    await emit('rollout.held', 'good');
    for (let tries = 1; tries < 5; tries += 1) {
      await expect.poll(async () => (await show()).tries, { timeout: 10_000 }).toBe(tries);
      await dueNow();
      await plane.database.query(
        `insert into work (kind, key, next_at) values ('webhook', 'ops', now())
         on conflict (kind, key) do update set next_at = now() where work.ticket is null`,
      );
      await plane.database.query(`select pg_notify('perch_work', 'webhook')`);
    }
    await settled();
    expect(received.map(({ payload }) => payload.subject)).toEqual(['bad', 'bad', 'bad', 'bad', 'bad', 'good']);
    expect(await show()).toMatchObject({
      givenUp: 1,
      lastGivenUp: expect.stringMatching(/^event \d+ \(rollout\.held of bad\) after 5 tries: answered 404$/),
    });
    const metrics = await (await fetch(`${plane.address}/metrics`)).text();
    expect(metrics).toContain('perch_webhook_deliveries_total{outcome="give_up"} 1');
  });

  it('hundreds come in order, each once, however many control planes there are', async () => {
    await add({ events: ['deployment.ready'] });
    const second = await startTestControlPlane({ database, storeFolder });
    try {
      await database.query(
        `insert into outbox (type, subject, data) select 'deployment.ready', 'e' || n, '{}' from generate_series(1, 250) n`,
      );
      await expect.poll(() => received.length, { timeout: 20_000 }).toBe(250);
      const subjects = received.map(({ payload }) => payload.subject);
      expect(subjects).toEqual(Array.from({ length: 250 }, (_, n) => `e${n + 1}`));
      await settled();
    } finally {
      await second.close();
    }
  });

  it('what people do to versions is among it', async () => {
    await add();
    const admin = new Admin({ controlPlane: plane, router: plane, adminKey, logs: async () => '' });
    await admin.upload('nlp/told', { 'model.onnx': scaleModel(1) });
    await admin.must('POST', '/models/nlp/told/versions/1/tags', { add: ['prod'] });
    await expect
      .poll(() => received.map(({ payload: { type, subject } }) => [type, subject]), { timeout: 10_000 })
      .toEqual([
        ['version.published', 'nlp/told/1'],
        ['version.tagged', 'nlp/told/1'],
      ]);
  });
});

describe('a control plane that goes away between sending and noting it', () => {
  it('sends it again, with the same id: at least once', async () => {
    await add();
    answers = ['hang'];
    await emit('rollout.promoted', 'x');
    await expect.poll(() => received.length).toBe(1);
    // It was received, and is not noted: the program ends first.
    await plane.close();
    plane = await startTestControlPlane({ database, storeFolder });
    await expect.poll(() => received.length, { timeout: 15_000 }).toBe(2);
    expect(received[0]!.body).toBe(received[1]!.body);
    await settled();
  });

  it('the same where it was taken, and the database was gone before that was noted', async () => {
    await add();
    // Whoever notes it has to wait for this row, and loses its connection meanwhile.
    const holding = database.query(
      `with held as materialized (select 1 from webhooks where name = 'ops' for update) select pg_sleep(30) from held`,
    );
    holding.catch(() => undefined);
    const asleep = `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`;
    await expect.poll(() => database.query(asleep), { interval: 20 }).toHaveLength(1);
    await emit('rollout.promoted', 'y');
    await expect
      .poll(
        () =>
          database.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and query ilike '%update webhooks set done_to%' and wait_event_type = 'Lock'`,
          ),
        { timeout: 10_000, interval: 20 },
      )
      .toHaveLength(1);
    await database.query(asleep.replace('select 1', 'select pg_cancel_backend(pid)'));
    await expect(holding).rejects.toThrow('canceling statement');
    await settled();
    expect(received.map(({ payload }) => payload.subject)).toEqual(['y', 'y']);
    expect(received[0]!.body).toBe(received[1]!.body);
  });
});

describe('who may have webhooks, and where they lead', () => {
  it.each([
    ['http://user:password@h/x', 'url: wants a URL without user and password'],
    ['ftp://h/x', 'url: wants http(s)://host/path'],
    ['x', 'url'],
  ])('%s is refused', async (bad, words) => {
    const { status, body } = await plane.call('POST', '/api/v1/webhooks', { name: 'bad', url: bad });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain(words);
  });

  it('a link-local address is never called', async () => {
    await add({ url: 'http://169.254.169.254/latest' });
    const { body } = await plane.call('POST', '/api/v1/webhooks/ops/test');
    expect(body).toMatchObject({
      delivered: false,
      status: null,
      error: expect.stringContaining('a link-local or reserved address'),
    });
  });

  it('an address behind a redirect is not called', async () => {
    answers = [302];
    await add();
    const { body } = await plane.call('POST', '/api/v1/webhooks/ops/test');
    expect(body).toMatchObject({ delivered: false, status: 302 });
    expect(received).toHaveLength(1);
  });

  it('a test is told at once, and says what the receiver answered', async () => {
    await add();
    answers = [204, 500];
    const first = await plane.call('POST', '/api/v1/webhooks/ops/test');
    expect(first.body).toMatchObject({ delivered: true, status: 204, error: null });
    expect(received[0]!.payload).toMatchObject({ id: first.body.id, type: 'webhook.test' });
    expect((await plane.call('POST', '/api/v1/webhooks/ops/test')).body).toMatchObject({
      delivered: false,
      status: 500,
    });
    expect((await plane.call('POST', '/api/v1/webhooks/nobody/test')).status).toBe(404);
  });

  it('the secret is shown once; neither it nor the path of the URL reaches the audit log', async () => {
    const { secret } = await add();
    expect(secret).toMatch(/^whsec_[0-9a-f]{48}$/);
    const rest = JSON.stringify([
      (await plane.call('GET', '/api/v1/webhooks')).body,
      (await plane.call('GET', '/api/v1/audit?subject=ops')).body,
    ]);
    expect(rest).not.toContain(secret);
    const [row] = (await plane.call('GET', '/api/v1/audit?subject=ops')).body.items;
    expect(row).toMatchObject({ action: 'webhook.create', detail: { origin: url.slice(0, url.indexOf('/hook')) } });
    expect((await add({ name: 'own', secret: 'my own secret 0123' })).secret).toBe('my own secret 0123');
    expect((await plane.call('POST', '/api/v1/webhooks', { name: 'ops', url })).status).toBe(409);
  });

  it('is for admins', async () => {
    const { body } = await plane.call('POST', '/api/v1/keys', { name: 'op', role: 'operator' });
    expect((await plane.call('GET', '/api/v1/webhooks', undefined, { key: body.secret })).status).toBe(403);
  });
});
