import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FeedbackClaims, type RolloutPolicyInput, readFeedbackKey, signFeedbackToken } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EvidenceService } from '../../libs/promotion/src/evidence/evidence.service.ts';
import { FeedbackService } from '../../libs/promotion/src/evidence/feedback.service.ts';
import { FeedbackStore } from '../../libs/promotion/src/evidence/feedback.store.ts';
import { PrometheusClient } from '../../libs/promotion/src/evidence/prometheus.client.ts';
import { ProvidedReconcile } from '../../libs/promotion/src/evidence/provided.reconcile.ts';
import { armOf, bucketsText, EvidenceStand, type RolloutWish, workerRow } from '../support/evidence.ts';

let stand: EvidenceStand;
beforeAll(async () => {
  stand = await EvidenceStand.start();
});
afterAll(() => stand.close());

describe('feedback', () => {
  const withinMs = 60_000;
  const policy: RolloutPolicyInput = { flags: [{ name: 'wrong', feedbackWithinMs: withinMs }, { name: 'unsure' }] };
  const anyone = () => undefined;
  const nowS = () => Math.floor(Date.now() / 1_000);

  async function onTrial(wish: RolloutWish = {}) {
    const scope = await stand.rollout({ policy, ...wish });
    const key = await stand.get(Transactions).run((tx) => stand.get(FeedbackService).keyFor(tx, scope.id));
    const token = (claims: Partial<FeedbackClaims> = {}, with64 = key) =>
      signFeedbackToken(
        { r: scope.id, e: 0, a: 'candidate', b: -1, q: randomUUID(), iat: nowS(), ...claims },
        readFeedbackKey(with64),
      );
    const send = (text: string, flag = 'wrong', value = true, mayCall: (endpoint: string) => void = anyone) =>
      stand.get(FeedbackService).take({ token: text, flag, value }, mayCall);
    return { scope, key, token, send };
  }
  /** As if a minute had gone by since all that was counted. */
  const age = async (rollout: string) => {
    await stand.database.query(`update reply_marks set at = at - interval '1 minute' where rollout_id = $1`, [rollout]);
    await stand.database.query(`update feedback_counts set cohort = cohort - interval '62 seconds' where rollout_id = $1`, [rollout]); // biome-ignore format: one line
  };

  it('counts a reply once a flag, and the first word stands', async () => {
    const { scope, token, send } = await onTrial();
    const given = token();
    expect(await send(given)).toMatchObject({ counted: true, rollout: scope.id });
    expect(await send(given)).toMatchObject({ counted: false });
    expect(await send(given, 'wrong', false)).toMatchObject({ counted: false });
    const twice = token();
    const answers = await Promise.all([send(twice), send(twice), send(twice)]);
    expect(answers.filter(({ counted }) => counted)).toHaveLength(1);
    expect(await stand.woken()).toEqual([scope.endpoint]);
  });

  it('keeps the key that a rollout once had', async () => {
    const { scope, key } = await onTrial();
    expect(Buffer.from(key, 'base64')).toHaveLength(32);
    expect(await stand.get(Transactions).run((tx) => stand.get(FeedbackService).keyFor(tx, scope.id))).toBe(key);
  });

  it.each<[string, Partial<FeedbackClaims>, string, string, RegExp]>([
    ['of an unknown rollout', { r: randomUUID() }, 'wrong', 'not_found', /not known/],
    ['of no rollout at all', { r: "'; drop table rollouts" }, 'wrong', 'not_found', /not known/],
    ['of an epoch that there is not', { e: 9 }, 'wrong', 'conflict', /not on trial/],
    ['that comes too late', { iat: 1 }, 'wrong', 'invalid', /within 60 s/],
    ['of a reply to come', { iat: 4_000_000_000 }, 'wrong', 'invalid', /clocks/],
    ['on a flag that nobody named', {}, 'other', 'invalid', /feedbackWithinMs: wrong/],
    ['on a flag that processing raises', {}, 'unsure', 'invalid', /does not wait/],
  ])('refuses feedback %s', async (_what, claims, flag, code, message) => {
    const { token, send } = await onTrial();
    await expect(send(token(claims), flag)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it('refuses what is no token, was changed, or was signed with the key of another rollout', async () => {
    const [one, other] = [await onTrial(), await onTrial()];
    await expect(one.send('nonsense')).rejects.toMatchObject({ code: 'invalid' });
    await expect(one.send(one.token({}, other.key))).rejects.toMatchObject({ code: 'forbidden' });
    const [body, signature] = one.token().split('.') as [string, string];
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
    const changed = Buffer.from(JSON.stringify({ ...claims, a: 'stable' })).toString('base64url');
    await expect(one.send(`${changed}.${signature}`)).rejects.toMatchObject({ code: 'forbidden' });
    const over = await onTrial({ state: 'promoted' });
    await expect(over.send(over.token())).rejects.toMatchObject({ code: 'conflict', message: /promoted/ });
  });

  it('asks whether the caller may call that endpoint', async () => {
    const { scope, token, send } = await onTrial();
    const refuse = (endpoint: string) => {
      throw new Error(`not ${endpoint}`);
    };
    await expect(send(token(), 'wrong', true, refuse)).rejects.toThrow(`not ${scope.endpoint}`);
  });

  it('judges only replies that are older than the window', async () => {
    const { scope, token, send } = await onTrial();
    for (const value of [true, true, false]) await send(token(), 'wrong', value);
    await send(token({ a: 'stable' }));
    await stand.get(EvidenceService).take(randomUUID(), 'boot', [workerRow(scope.id)]);
    const flagOf = async () => (await stand.read(scope)).metrics.find(({ metric }) => metric === 'wrong');
    expect(await flagOf()).toMatchObject({ candidate: { n: 0, x: 0 }, epochs: [{ candidateEvents: 0 }] });
    await age(scope.id);
    expect(await flagOf()).toMatchObject({
      // 25 requests of which 2 failed, 75 of which 1 did
      candidate: { n: 23, x: 2 },
      stable: { n: 74, x: 1 },
      epochs: [{ share: 0.25, stableEvents: 1, candidateEvents: 2 }],
    });
    const { feedback, holds } = await stand.read(scope);
    expect(feedback).toEqual([{ flag: 'wrong', candidate: { n: 23, x: 3 }, stable: { n: 74, x: 1 }, differs: false }]);
    expect(holds).toEqual([]);
  });

  it('holds the promotion when one arm provably gets more of it', async () => {
    const { scope, token, send } = await onTrial();
    for (let at = 0; at < 40; at += 1) await send(token(), 'wrong', false);
    const many = { stable: armOf({ error: { n: 400, x: 0 } }), candidate: armOf({ error: { n: 100, x: 0 } }) };
    await stand.get(EvidenceService).take(randomUUID(), 'boot', [workerRow(scope.id, many)]);
    await age(scope.id);
    const { feedback, holds } = await stand.read(scope);
    expect(feedback[0]).toMatchObject({ candidate: { n: 100, x: 40 }, stable: { n: 400, x: 0 }, differs: true });
    expect(holds).toEqual([expect.stringMatching(/wrong: feedback came back for 40 % .* and 0 % of stable's/)]);
  });

  it('judges users under a sticky key, and nobody without one', async () => {
    const { scope, token, send } = await onTrial({ sticky: true });
    expect(await send(token({ b: -1 }))).toMatchObject({ counted: false, message: expect.stringMatching(/sticky/) });
    for (const bucket of [7, 7, 8]) await send(token({ b: bucket }));
    const seen = (buckets: number[]) => armOf({ error: { n: 50, x: 0, seen: bucketsText(buckets) } });
    const rows = [workerRow(scope.id, { candidate: seen([7, 8, 9]), stable: seen([9_000]) })];
    await stand.get(EvidenceService).take(randomUUID(), 'boot', rows);
    await age(scope.id);
    const evidence = await stand.read(scope);
    expect(evidence.candidateEvents).toBe(2);
    expect(evidence.metrics.find(({ metric }) => metric === 'wrong')).toMatchObject({
      epochs: [{ share: 0.25, stableEvents: 0, candidateEvents: 2 }],
      candidate: { n: 3, x: 2 },
      stable: { n: 1, x: 0 },
    });
  });

  it('forgets who gave feedback only when it could not count any more', async () => {
    const { scope, token, send } = await onTrial();
    const given = token();
    await send(given);
    const sweep = () => stand.get(Transactions).run((tx) => stand.get(FeedbackStore).sweep(tx));
    await sweep();
    expect(await send(given)).toMatchObject({ counted: false });
    const [row] = await stand.database.query(
      `select extract(epoch from expires_at - now()) as left from feedback_given where rollout_id = $1`,
      [scope.id],
    );
    expect(Number(row!['left'])).toBeGreaterThan(86_000);
  });
});

describe('figures of a Prometheus', () => {
  let server: Server;
  let url: string;
  const asked: string[] = [];
  let figures: Record<string, string> = {};
  let answer: ((query: string) => { status: number; body: string } | null) | undefined;
  const vector = (text: string) =>
    JSON.stringify({
      status: 'success',
      data: { resultType: 'vector', result: [{ metric: {}, value: [1_435_781_451.781, text] }] },
    });

  beforeAll(async () => {
    server = createServer((request, response) => {
      const asking = new URL(request.url!, 'http://x');
      const query = asking.searchParams.get('query') ?? '';
      asked.push(`${asking.pathname} ${query}`);
      const said = answer ? answer(query) : { status: 200, body: vector(figures[query] ?? '0') };
      if (said) response.writeHead(said.status, { 'content-type': 'application/json' }).end(said.body);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/prom`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const provided = () => [{ name: 'fraud', url, events: 'bad{v="{{version}}"}', totals: 'all{arm="{{arm}}"}' }];
  const say = (stable: [string, string], candidate: [string, string]) => {
    figures = { 'bad{v="1"}': stable[0], 'all{arm="stable"}': stable[1], 'bad{v="2"}': candidate[0], 'all{arm="candidate"}': candidate[1] }; // biome-ignore format: one table
  };
  const look = (endpoint: string) => stand.get(ProvidedReconcile).read(endpoint);

  it('counts what grew since the start, by epoch, and nothing twice', async () => {
    const scope = await stand.rollout({ policy: { provided: provided() }, shares: [0.05, 0.25] });
    const metricOf = async () => (await stand.read(scope)).metrics.find(({ metric }) => metric === 'fraud');
    expect((await stand.read(scope)).holds).toEqual([expect.stringMatching(/fraud: .* not asked yet/)]);
    expect(await stand.get(ProvidedReconcile).endpoints()).toContain(scope.endpoint);
    await stand.database.query('update rollouts set epoch = 0 where id = $1', [scope.id]);
    say(['100', '5000'], ['10', '50']);
    await look(scope.endpoint);
    expect(asked).toContain('/prom/api/v1/query bad{v="2"}');
    expect((await stand.read(scope)).holds).toEqual([]);
    expect(await metricOf()).toMatchObject({ whole: { stable: { n: 0, x: 0 } } }); // only where they stood
    say(['101', '5100'], ['12', '60']);
    await look(scope.endpoint);
    await stand.database.query('update rollouts set epoch = 1 where id = $1', [scope.id]);
    say(['101', '5200'], ['15', '90']);
    await look(scope.endpoint);
    say(['1', '10'], ['0', '0']); // processes began anew, or are away
    await look(scope.endpoint);
    expect((await stand.read(scope)).holds).toEqual([expect.stringMatching(/fell/)]);
    await stand.database.query(
      `update provided_counts set body = jsonb_set(jsonb_set(body, '{stable,fell,sinceMs}', '0'), '{candidate,fell,sinceMs}', '0')`,
    );
    say(['2', '40'], ['1', '10']);
    await look(scope.endpoint);
    expect(await metricOf()).toEqual({
      metric: 'fraud',
      epochs: [
        { epoch: 0, share: 0.05, stableEvents: 1, candidateEvents: 2 },
        { epoch: 1, share: 0.25, stableEvents: 1, candidateEvents: 4 },
      ],
      stable: { n: 130, x: 1 },
      candidate: { n: 40, x: 4 },
      whole: { stable: { n: 230, x: 2 }, candidate: { n: 50, x: 6 } },
    });
    expect(await stand.woken()).toContain(scope.endpoint);
  });

  it.each<[string, () => { status: number; body: string } | null, RegExp]>([
    [
      'an error of the query',
      () => ({
        status: 400,
        body: JSON.stringify({ status: 'error', errorType: 'bad_data', error: 'parse error at char 3' }),
      }),
      /400: bad_data: parse error/,
    ],
    ['a page that is no JSON', () => ({ status: 200, body: '<html>' }), /answers 200/],
    ['what is no number', () => ({ status: 200, body: vector('NaN') }), /answers NaN/],
    ['a redirect', () => ({ status: 302, body: '' }), /answers 302/],
  ])('holds the promotion at %s, and says so', async (_what, said, message) => {
    const scope = await stand.rollout({ policy: { provided: provided() } });
    answer = said;
    await look(scope.endpoint);
    answer = undefined;
    expect((await stand.read(scope)).holds).toEqual([expect.stringMatching(message)]);
    await look(scope.endpoint);
    expect((await stand.read(scope)).holds).toEqual([]);
  });

  it('holds the promotion when figures are old', async () => {
    const scope = await stand.rollout({ policy: { provided: provided() } });
    await look(scope.endpoint);
    await stand.database.query(`update provided_counts set read_at = now() - interval '5 minutes'`);
    expect((await stand.read(scope)).holds).toEqual([expect.stringMatching(/300 s old/)]);
  });

  it('waits no longer than it was told, calls no link-local address, and says when nobody is there', async () => {
    const client = stand.get(PrometheusClient);
    answer = () => null;
    await expect(client.figure(url, 'x', 100)).rejects.toMatchObject({ code: 'timeout' });
    answer = undefined;
    await expect(client.figure('http://169.254.169.254', 'x', 100)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(client.figure('http://127.0.0.1:1', 'x')).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/ECONNREFUSED/),
    });
    const shown = await stand.shownMetrics();
    for (const outcome of ['timeout', 'forbidden', 'upstream', 'ok'])
      expect(shown).toContain(`perch_provider_query_seconds_count{outcome="${outcome}"}`);
  });
});
