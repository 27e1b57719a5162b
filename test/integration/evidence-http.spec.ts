import { randomUUID } from 'node:crypto';
import { readFeedbackKey, rolloutPolicy, signFeedbackToken } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routerJoinKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { workerRow } from '../support/evidence.ts';

let plane: TestControlPlane;
let router: { id: string; token: string };
const key = Buffer.alloc(32, 7);
const rollout = randomUUID();
beforeAll(async () => {
  plane = await startTestControlPlane();
  const enrolled = await plane.call(
    'POST',
    '/internal/v1/enrol',
    { kind: 'router', name: 'r1' },
    { key: routerJoinKey },
  );
  router = enrolled.body;
  const policy = rolloutPolicy.parse({ flags: [{ name: 'wrong', feedbackWithinMs: 3_600_000 }] });
  const arm = (version: number) => ({ deployment: `d${version}`, version, digest: `g${version}` });
  // nobody else looks at this rollout: its endpoint is not there, and a pass would end it
  await plane.database.query(
    `insert into work (kind, key, next_at, ticket) values ('rollout', 'text/a', now() + interval '1 hour', gen_random_uuid())`,
  );
  await plane.database.query(
    `insert into rollouts (id, endpoint, state, run, reason, stable, candidate, policy, salt, epoch, share, epochs, by_hand,
       allow_breaking, started_at, started_by, step_at, verifying_since, patience_since)
     values ($1, 'text/a', 'shifting', 'running', '', $2, $3, $4, 's', 0, 0.1, $5, false, false, now(), 'olga', now(), now(), now())`,
    [rollout, arm(1), arm(2), policy, JSON.stringify([{ epoch: 0, share: 0.1, since: new Date() }])],
  );
  await plane.database.query('insert into feedback_keys (rollout_id, key) values ($1, $2)', [rollout, key]);
});
afterAll(() => plane.close());

const token = () =>
  signFeedbackToken(
    { r: rollout, e: 0, a: 'candidate', b: -1, q: randomUUID(), iat: Math.floor(Date.now() / 1_000) },
    readFeedbackKey(key.toString('base64')),
  );
const newKey = async (role: string, endpoints: string[] = []): Promise<string> =>
  (await plane.call('POST', '/api/v1/keys', { name: role, role, endpoints })).body.secret;

describe('evidence over HTTP', () => {
  it("is taken with a router's report", async () => {
    const report = { bootId: 'b1', hash: 'h', evidence: [workerRow(rollout), workerRow(randomUUID())] };
    const answer = await plane.call('PUT', `/internal/v1/routers/${router.id}/report`, report, { key: router.token });
    expect(answer.status).toBe(200);
    const rows = await plane.database.query('select rollout_id, router_id, counts from arm_counts');
    expect(rows).toMatchObject([
      { rollout_id: rollout, router_id: router.id, counts: { candidate: { ended: { error: { n: 25, x: 2 } } } } },
    ]);
  });

  it('takes feedback of whoever may call the endpoint', async () => {
    const mine = await newKey('inference', ['text/*']);
    const body = { token: token(), flag: 'wrong' };
    const send = (sent: unknown, given: string) => plane.call('POST', '/api/v1/feedback', sent, { key: given });
    expect(await send(body, mine)).toMatchObject({ status: 200, body: { counted: true, rollout } });
    expect(await send(body, mine)).toMatchObject({ status: 200, body: { counted: false } });
    expect(await send({ ...body, token: token() }, await newKey('publisher'))).toMatchObject({
      body: { counted: true },
    });
    const other = await newKey('inference', ['image/*']);
    expect(await send({ ...body, token: token() }, other)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(await send(body, '')).toMatchObject({ status: 401 });
    expect(await send({ ...body, flag: 'other' }, mine)).toMatchObject({ status: 400, body: { code: 'invalid' } });
    expect(await send({ token: 'x.y', flag: 'wrong' }, mine)).toMatchObject({ status: 400 });
    expect(await send({ flag: 'wrong' }, mine)).toMatchObject({ status: 400 });
  });
});
