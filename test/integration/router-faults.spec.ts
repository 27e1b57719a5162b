import type { ServerResponse } from 'node:http';
import type { Route } from '@perch/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { route, target } from '../../bench/control-stub.mjs';
import { freePorts } from '../support/real-triton.ts';
import { type Answer, RouterStand } from './router-stand.ts';
import { type Act, cut, cutWithin, fails, good, ScriptedServer } from './scripted-server.ts';

const until = async (holds: () => boolean): Promise<void> => {
  const deadline = Date.now() + 10_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('never came true');
    await new Promise((done) => setTimeout(done, 2));
  }
};

const tensors = {
  inputs: [{ name: 'x', datatype: 'FP32' as const, shape: [-1] }],
  outputs: [{ name: 'y', datatype: 'FP32' as const, shape: [-1] }],
};
const notFound = "Request for unknown model: 'm' is not found";
const notReady = "Request for unknown model: 'm' version 1 is not at ready state";

describe('what a request survives', () => {
  let a: ScriptedServer;
  let b: ScriptedServer;
  let stand: RouterStand;
  const both = (fields: Partial<Route> = {}, model = 'm') =>
    route([target({ deployment: `d-${model}`, tritonModel: model, servers: ['a', 'b'], ...tensors })], fields);
  const publish = (endpoints: Record<string, Route>) => stand.publish({ servers: { a: a.at, b: b.at }, endpoints });
  const ask = (endpoint = 'e', headers: Record<string, string> = {}) =>
    stand.post(`/v2/models/${endpoint}/infer`, { inputs: [] }, headers);

  beforeAll(async () => {
    stand = await RouterStand.start();
  });
  afterAll(() => stand?.stop());
  afterEach(() => Promise.all([a.close(), b.close()]));
  const start = async () => {
    [a, b] = await Promise.all([new ScriptedServer().start(), new ScriptedServer().start()]);
  };

  it.each([
    ['nobody listens', 'closed', false],
    ['an unknown model', fails(404, notFound), false],
    [
      'a model none of whose versions is ready',
      fails(404, "Request for unknown model: 'm' has no available versions"),
      false,
    ],
    ['a model that is not ready', fails(503, notReady), false],
    ['a server that stops', fails(503, 'Server exiting'), false],
    ['a connection lost before the reply', cut, true],
    ['a connection lost within the reply', cutWithin, true],
  ] as const)('%s on one server: the other one answers, all of 40', async (_what, act, idempotent) => {
    await start();
    if (act !== 'closed') a.act = act;
    const [closed] = await freePorts(1);
    const nobody = { http: `127.0.0.1:${closed}`, grpc: `127.0.0.1:${closed}` };
    const servers = { a: act === 'closed' ? nobody : a.at, b: b.at };
    await stand.publish({ servers, endpoints: { e: both({ idempotent }) } });
    for (let i = 0; i < 40; i += 1) {
      const answer = await ask();
      expect([answer.status, answer.json.model_name]).toEqual([200, 'e']);
    }
    expect(b.asked.length).toBe(40);
  });

  it.each([
    ['a connection lost before the reply, where a second run would do harm', cut, false, 502],
    ['a connection lost within the reply, where a second run would do harm', cutWithin, false, 502],
    ['a model that fails', fails(500, 'the model says no'), true, 502],
    ['a full queue', fails(503, 'Exceeds maximum queue size'), true, 503],
    ['a time-out in the queue', fails(503, 'Request timeout expired'), true, 504],
    ['input of a wrong shape', fails(400, "unexpected shape for input 'x' for model 'm'"), true, 400],
  ] as const)('%s is not tried again', async (_what, act, idempotent, status) => {
    await start();
    a.act = act;
    b.act = act;
    await publish({ e: both({ idempotent }) });
    const answer = await ask();
    expect(answer.status).toBe(status);
    expect(answer.text).not.toMatch(/'m'|127\.0\.0\.1/);
    expect(a.asked.length + b.asked.length).toBe(1);
  });

  it('never shows a server’s 404 to the client: 503 with Retry-After when no server has the model', async () => {
    await start();
    a.act = fails(404, notFound);
    b.act = fails(503, notReady);
    await publish({ e: both() });
    const answer = await ask('e', { 'x-request-timeout-ms': '200' });
    expect([answer.status, answer.headers.get('retry-after'), answer.json]).toEqual([
      503,
      '1',
      { error: 'no server of e is ready' },
    ]);
  });

  it('tries again what may have run for 20 % of the requests or 50 in 10 s, and no more', async () => {
    await start();
    a.act = cut;
    b.act = cut;
    const own = await RouterStand.start();
    try {
      await own.publish({ servers: { a: a.at, b: b.at }, endpoints: { e: both() } });
      const answers = await Promise.all(
        Array.from({ length: 100 }, () =>
          own.post('/v2/models/e/infer', { inputs: [] }, { 'x-request-timeout-ms': '3000' }),
        ),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([502]));
      expect(a.asked.length + b.asked.length).toBeLessThanOrEqual(150);
      expect(a.asked.length + b.asked.length).toBeGreaterThan(100);
    } finally {
      await own.stop();
    }
  });

  it('leaves a server alone for the model that fails there, and only for that', async () => {
    await start();
    a.act = (...call) => (call[0].url!.includes('/models/bad/') ? fails(500, 'no') : good)(...call);
    await publish({ bad: both({}, 'bad'), fine: both({}, 'fine') });
    const statuses: number[] = [];
    while (statuses.filter((status) => status === 502).length < 5) statuses.push((await ask('bad')).status);
    expect(a.countOf('bad')).toBe(5);
    const since = Date.now();
    let asked = 0;
    while (Date.now() - since < 700) {
      expect((await ask('bad')).status).toBe(200);
      expect((await ask('fine')).status).toBe(200);
      asked += 1;
    }
    expect([asked > 20, a.countOf('bad'), a.countOf('fine') > 0]).toEqual([true, 5, true]);
    a.act = good;
    const deadline = Date.now() + 10_000;
    while (a.countOf('bad') === 5 && Date.now() < deadline) await ask('bad');
    expect(a.countOf('bad')).toBeGreaterThan(5);
  });

  it('uses the last server however often it failed', async () => {
    await start();
    a.act = fails(500, 'no');
    b.act = fails(500, 'no');
    await publish({ bad: both({}, 'bad') });
    for (let i = 0; i < 30; i += 1) expect((await ask('bad')).status).toBe(502);
    expect(a.countOf('bad') + b.countOf('bad')).toBe(30);
    b.act = good;
    const answers = [];
    for (let i = 0; i < 30; i += 1) answers.push((await ask('bad')).status);
    expect(answers).toContain(200);
  });

  it('gives a call up at its deadline and when the client leaves, and the server sees both', async () => {
    await start();
    const ended: number[] = [];
    const begun = Date.now();
    const slow: Act = (_request, response) => void response.once('close', () => ended.push(Date.now() - begun));
    a.act = slow;
    b.act = slow;
    await publish({ e: both({ timeoutMs: 60_000 }) });
    expect((await ask('e', { 'x-request-timeout-ms': '300' })).status).toBe(504);
    const leaving = new AbortController();
    const gone = stand.send('/v2/models/e/infer', { method: 'POST', body: '{"inputs":[]}', signal: leaving.signal });
    await until(() => a.asked.length + b.asked.length === 2);
    leaving.abort();
    await expect(gone).rejects.toThrow();
    await until(() => ended.length === 2);
    expect(ended[0]).toBeGreaterThanOrEqual(250);
  });

  it('sends nothing more to a server that is slow while another one has less in hand', async () => {
    await start();
    const held: ServerResponse[] = [];
    a.act = (_request, response) => void held.push(response);
    await publish({ e: both() });
    const works: Promise<Answer>[] = [];
    while (a.asked.length === 0) {
      works.push(ask());
      await until(() => a.asked.length + b.asked.length === works.length);
    }
    for (let i = 0; i < 50; i += 1) expect((await ask()).status).toBe(200);
    expect([a.asked.length, held.length]).toEqual([1, 1]);
    good(held[0]!.req, held[0]!, Buffer.alloc(0));
    expect((await Promise.all(works)).map(({ status }) => status)).toEqual(works.map(() => 200));
    a.act = good;
    while (a.asked.length === 1) await ask();
  });
});
