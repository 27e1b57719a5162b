import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Explanation, namedPolicies, type Rollout, type RolloutSimulation } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../../apps/cli/src/cli.config.ts';
import { runCommand } from '../../apps/cli/src/commands/rollout-command.ts';
import { run as explain } from '../../apps/cli/src/commands/rollout-explain.ts';
import { run as list } from '../../apps/cli/src/commands/rollout-list.ts';
import { run as show } from '../../apps/cli/src/commands/rollout-show.ts';
import { run as simulate } from '../../apps/cli/src/commands/rollout-simulate.ts';
import { run as start } from '../../apps/cli/src/commands/rollout-start.ts';
import { run as watch } from '../../apps/cli/src/commands/rollout-watch.ts';
import { runs as webhooks } from '../../apps/cli/src/commands/webhook-run.ts';
import { namesFor } from '../../apps/cli/src/completion-names.source.ts';
import { Invocation } from '../../apps/cli/src/invocation.ts';
import type { Run } from '../../apps/cli/src/verb.ts';
import { adminKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';

let plane: TestControlPlane;
let receiver: Server;
const good = '0190f3a1-0000-7000-8000-000000000001';
const bad = '0190f3a1-0000-7000-8000-000000000002';
const arm = (version: number) => ({ deployment: `d${version}`, version, digest: `digest-${version}` });

/** Rollouts that are over: what is stored of them is all that there is. */
async function insert(id: string, endpoint: string, state: string, minute: number): Promise<void> {
  await plane.database.query(
    `insert into rollouts (id, endpoint, state, run, reason, stable, candidate, policy, salt, epoch, share, epochs, by_hand,
       allow_breaking, started_at, started_by, step_at, verifying_since, patience_since, ended_at, ended_as)
     values ($1, $2, $3, 'running', 'said so', $4, $5, $6, 's', 2, 0, '[]', false, false, $7, 'system', $7, $7, $7,
       $7::timestamptz + interval '5 minutes', $8)`,
    [
      id, endpoint, state, JSON.stringify(arm(1)), JSON.stringify(arm(2)), JSON.stringify(namedPolicies.default),
      new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(), state === 'promoted' ? 'promoted' : 'verdict',
    ],
  ); // biome-ignore format: values in their order
  await plane.database.query(
    `insert into rollout_events (rollout_id, at, type, actor, message)
     select $1, now(), 'step', 'system', 'step ' || n from generate_series(1, 5) n`,
    [id],
  );
}

beforeAll(async () => {
  plane = await startTestControlPlane();
  receiver = createServer((request, response) => void request.resume().on('end', () => response.writeHead(204).end()));
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done));
  const spec = { name: 'text/a', model: { project: 'nlp', name: 'm' }, traffic: { mode: 'progressive' } };
  expect((await plane.call('POST', '/api/v1/endpoints', spec)).status).toBe(201);
  await insert(good, 'text/a', 'promoted', 0);
  await insert(bad, 'img/b', 'rolled_back', 10);
});
afterAll(async () => {
  await plane?.close();
  await new Promise((done) => receiver.close(done));
});

const invocation = (output = 'table') =>
  new Invocation({ output }, { ...readSettings({}), url: plane.address, apiKey: adminKey });
/** What a verb prints, and its exit code. */
async function perch(run: Run, args: string[], options: Record<string, unknown> = {}, output = 'table') {
  const one = invocation(output);
  try {
    const shown = await run(one, args, options);
    return { text: shown?.text() ?? '', value: shown?.value, exitCode: shown?.exitCode ?? 0 };
  } finally {
    await one.close();
  }
}
const newKey = async (role: string, endpoints: string[] = []) =>
  (await plane.call('POST', '/api/v1/keys', { name: role, role, endpoints })).body.secret as string;

describe('the API of rollouts', () => {
  it('lists them newest first, by endpoint and by whether they go on, page by page', async () => {
    const ids = async (query: string) =>
      (await plane.call('GET', `/api/v1/rollouts${query}`)).body.items.map(({ id }: Rollout) => id);
    expect(await ids('')).toEqual([bad, good]);
    expect(await ids('?endpoint=text/a')).toEqual([good]);
    expect(await ids('?active=true')).toEqual([]);
    const first = (await plane.call('GET', '/api/v1/rollouts?limit=1')).body;
    expect(first.items[0].id).toBe(bad);
    expect(await ids(`?limit=1&cursor=${first.nextCursor}`)).toEqual([good]);
  });

  it('tells events above the one that was seen, page by page', async () => {
    const path = `/api/v1/rollouts/${good}/events`;
    const { items, nextCursor } = (await plane.call('GET', `${path}?limit=2`)).body;
    expect(items.map(({ message }: { message: string }) => message)).toEqual(['step 1', 'step 2']);
    const rest = (await plane.call('GET', `${path}?cursor=${nextCursor}`)).body.items;
    expect(rest.map(({ message }: { message: string }) => message)).toEqual(['step 3', 'step 4', 'step 5']);
    expect((await plane.call('GET', `${path}?after=${rest[1].id}`)).body.items).toEqual([rest[2]]);
  });

  it.each([
    ['GET', '/api/v1/rollouts/nonsense', 400],
    ['GET', '/api/v1/rollouts/0190f3a1-0000-7000-8000-000000000009', 404],
    ['GET', `/api/v1/rollouts/${good}/explain?event=999999`, 404],
    ['POST', `/api/v1/rollouts/${good}/dance`, 400],
    ['POST', `/api/v1/rollouts/${good}/pause`, 409],
    ['POST', '/api/v1/endpoints/text%2Fa/rollout', 409],
    ['POST', '/api/v1/endpoints/nobody/rollout', 404],
    ['POST', '/api/v1/endpoints/nobody/rollout/simulate', 404],
    ['POST', '/api/v1/endpoints/text%2Fa/rollout/simulate', 400],
  ])('%s %s is %i, and says why', async (method, path, status) => {
    const answer = await plane.call(method, path, method === 'POST' ? {} : undefined);
    expect(answer.status).toBe(status);
    expect(answer.body.detail).toMatch(/\w{3,}/);
  });

  it.each([
    ['weights that fall', { weightsPercent: [5, 1] }, 'weightsPercent'],
    ['no dwell', { dwellMs: 0 }, 'dwellMs'],
    ['a margin of nothing', { error: { margin: { absolute: 0, relative: 0 } } }, 'margin of zero'],
    ['an alpha of one', { alpha: 1 }, 'alpha'],
  ])('refuses a policy with %s', async (_name, policy, words) => {
    const { status, body } = await plane.call('POST', '/api/v1/endpoints/text%2Fa/rollout', { policy });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain(words);
  });

  it('lets viewers look and operators command, each within the scopes of the key', async () => {
    const viewer = await newKey('viewer', ['text/*']);
    const operator = await newKey('operator', ['img/*']);
    const as = async (key: string, method: string, path: string) =>
      (await plane.call(method, `/api/v1${path}`, method === 'POST' ? {} : undefined, { key })).status;
    expect(await as(viewer, 'GET', `/rollouts/${good}`)).toBe(200);
    expect(await as(viewer, 'GET', `/rollouts/${bad}`)).toBe(403);
    expect(await as(viewer, 'POST', `/rollouts/${good}/abort`)).toBe(403);
    expect(await as(operator, 'POST', `/rollouts/${good}/abort`)).toBe(403);
    expect(await as(operator, 'POST', `/rollouts/${bad}/promote`)).toBe(409);
    const seen = (await plane.call('GET', '/api/v1/rollouts', undefined, { key: viewer })).body.items;
    expect(seen.map(({ endpoint }: Rollout) => endpoint)).toEqual(['text/a']);
  });
});

describe('the words of perch rollout', () => {
  it('list, show, and watch of what is over', async () => {
    expect((await perch(list, [])).text).toContain('No rollout goes on');
    expect((await perch(list, [], { all: true })).text).toMatch(/img\/b +1 -> 2 +rolled back/);
    const shown = await perch(show, ['text/a']);
    expect(shown.text).toMatch(/^text\/a {2}version 1 . 2 +promoted\n/);
    expect(shown.text).toContain('step 5');
    const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    try {
      expect((await perch(watch, ['text/a'], { wait: '300ms' })).exitCode).toBe(0);
      expect((await perch(watch, [bad])).exitCode).toBe(1);
      expect((await perch(watch, [bad], {}, 'json')).exitCode).toBe(1);
      const lines = written.mock.calls.map(([text]) => String(text));
      expect(lines).toContain('img/b: version 1 to 2, rolled back, 0 % of requests: said so\n');
      expect(lines.filter((line) => line.startsWith('{')).map((line) => Object.keys(JSON.parse(line))[0])).toEqual([
        'event', 'event', 'event', 'event', 'event', 'rollout',
      ]); // biome-ignore format: one row
    } finally {
      written.mockRestore();
    }
  });

  it('explain without a decision by evidence says so', async () => {
    const { text, value, exitCode } = await perch(explain, [bad]);
    expect(exitCode).toBe(0);
    expect((value as Explanation).event).toBeNull();
    expect(text).toMatch(/^img\/b: version 1 to 2\n\n\w/);
  });

  it('simulate with figures of its own', async () => {
    const flags = { rpm: '30000', errorRate: '0.1%', runs: '50', policy: 'quick' };
    const { text, value } = await perch(simulate, ['text/a'], flags);
    expect(value as RolloutSimulation).toMatchObject({ requestsPerMinute: 30_000, errorRate: 0.001, runs: 50 });
    expect(text).toContain('Requests as given; errors as given.');
    expect(text).toMatch(/an equal version comes to its bake after +\d/);
  }, 60_000);

  it.each([
    ['no such endpoint', () => perch(show, ['nobody']), 'not_found'],
    ['no rollout yet', () => perch(show, ['text/none']), 'not_found'],
    ['a verb on what is over', () => perch(runCommand('pause'), [good], {}), 'conflict'],
    ['nothing to start from', () => perch(start, ['text/a'], { dryRun: true }), 'conflict'],
    ['a version in words', () => perch(start, ['text/a'], { version: 'new' }), 'invalid'],
    ['a rate above one', () => perch(simulate, ['text/a'], { errorRate: '101%' }), 'invalid'],
  ])('%s is refused', async (_name, words, code) => expect(words()).rejects.toMatchObject({ code }));
});

describe('the words of perch webhook', () => {
  it('add, list, test, remove', async () => {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    expect((await perch(webhooks.add, ['ops', url], { event: ['rollout.promoted'] })).text).toMatch(/secret +whsec_/);
    expect((await perch(webhooks.list, [])).text).toMatch(/ops .*rollout\.promoted +good +0 +0/);
    expect(await perch(webhooks.test, ['ops'])).toMatchObject({ exitCode: 0, text: expect.stringContaining('204') });
    expect((await perch(webhooks.remove, ['ops'])).text).toBe('Webhook ops is removed.');
    await expect(perch(webhooks.remove, ['ops'])).rejects.toMatchObject({ code: 'not_found' });
    await expect(perch(webhooks.add, ['ops', url], { event: ['nonsense'] })).rejects.toMatchObject({ code: 'invalid' });
  });
});

describe('completion', () => {
  it('knows endpoints and rollouts of the installation, and is silent without one', async () => {
    vi.stubEnv('PERCH_URL', plane.address);
    vi.stubEnv('PERCH_API_KEY', adminKey);
    expect(await namesFor('rollout explain', undefined)).toEqual(['text/a', bad, good]);
    expect(await namesFor('rollout simulate', undefined)).toEqual(['text/a']);
    expect(await namesFor('rollout pause', undefined)).toEqual([]);
    vi.stubEnv('PERCH_URL', 'http://127.0.0.1:1');
    expect(await namesFor('rollout explain', undefined)).toEqual([]);
    vi.unstubAllEnvs();
  });
});
