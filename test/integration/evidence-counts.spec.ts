import {
  bucketCount,
  isSignedBy,
  peekFeedbackToken,
  type Route,
  type RouteRollout,
  readFeedbackKey,
  type WorkerEvidence,
} from '@perch/contracts';
import { bucketOf, seedOf } from '@perch/routing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ControlStub, route, startControlStub, target } from '../../bench/control-stub.mjs';
import { type Answer, RouterStand } from './router-stand.ts';
import { type Act, fails, good, ScriptedServer } from './scripted-server.ts';

/** Requests that a load has in hand at most. */
const inHand = 4;
const salt = 'salt-of-the-rollout';
const key = Buffer.alloc(32, 7).toString('base64');
const failing = fails(500, 'the model says no');

let server: ScriptedServer;
let control: ControlStub;
const stands: RouterStand[] = [];

beforeAll(async () => {
  server = await new ScriptedServer().start();
  let asked = 0;
  const everyFifth: Act = (...call) => (asked++ % 5 === 4 ? failing : good)(...call);
  server.actFor.set('candidate', everyFifth);
});
afterEach(() => void server.actFor.delete('stable'));
afterAll(() => server?.close());
async function stopAll(): Promise<void> {
  await Promise.all(stands.splice(0).map((stand) => stand.stop()));
  await control?.close();
}

const rollout: RouteRollout = {
  id: 'r',
  epoch: 1,
  stable: 'd1',
  candidate: 'd2',
  salt,
  leaseMs: 15_000,
  slowMs: 60_000,
  slowGraceMs: 0,
  metrics: ['slow'],
  fallback: null,
  shadow: null,
  feedbackKey: null,
};
const tensor = (name: string) => [{ name, datatype: 'FP32' as const, shape: [-1, -1] }];
const both = { servers: ['a'], inputs: tensor('x'), outputs: tensor('y') };
const onTrial = (fields: Partial<RouteRollout> = {}, more: Partial<Route> = {}): Route => {
  const targets = [
    target({ deployment: 'd1', version: 1, tritonModel: 'stable', ...both }),
    target({ deployment: 'd2', version: 2, tritonModel: 'candidate', ...both }),
  ];
  const arms = targets.map(({ deployment }) => ({ deployment, share: 0.5 }));
  return route(targets, { arms, rollout: { ...rollout, ...fields }, ...more });
};

async function startControl(endpoints: Record<string, Route>): Promise<void> {
  control = await startControlStub();
  control.publish({ servers: { a: server.at }, endpoints });
}
const ask = (stand: RouterStand, endpoint: string, headers: Record<string, string> = {}): Promise<Answer> =>
  stand.post(`/v2/models/${endpoint}/infer`, { inputs: [] }, headers);

/** One more router on the same control plane, once it takes candidates: before its first report it does not. */
async function startRouter(workers: number): Promise<RouterStand> {
  const stand = await RouterStand.start({ PERCH_WORKERS: String(workers) }, control);
  stands.push(stand);
  await until(async () => (await ask(stand, 'warm')).headers.get('x-perch-arm') === 'candidate', 'a candidate asked');
  return stand;
}
async function until(holds: () => Promise<boolean> | boolean, what: string): Promise<void> {
  for (const deadline = Date.now() + 15_000; !(await holds()); ) {
    if (Date.now() > deadline) throw new Error(`never came true: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

interface Entry {
  endedAt: number;
  arm: string | null;
  failed: boolean;
  user: string | undefined;
  pinned: boolean;
}

/** Sends to one router until told to end, and writes down every answer; connections that failed were none. */
class Load {
  readonly log: Entry[] = [];
  private ended = false;
  private readonly senders: Promise<void>[];
  private static users = 0;

  constructor(
    private readonly stand: RouterStand,
    private readonly endpoint: string,
  ) {
    this.senders = Array.from({ length: inHand }, () => this.send());
  }

  private async send(): Promise<void> {
    for (let turn = 0; !this.ended; turn += 1) {
      const user = turn % 7 === 6 ? undefined : `user-${Load.users++ % 500}`;
      const pinned = turn % 11 === 10;
      const headers = { ...(user ? { 'x-user': user } : {}), ...(pinned ? { 'x-perch-version': '2' } : {}) };
      const answer = await ask(this.stand, this.endpoint, headers).catch(() => undefined);
      if (!answer) return;
      const failed = answer.status !== 200;
      this.log.push({ endedAt: Date.now(), arm: answer.headers.get('x-perch-arm'), failed, user, pinned });
    }
  }

  until(answers: number): Promise<void> {
    return until(() => this.log.length >= answers, `${answers} answers`);
  }

  async stop(): Promise<Entry[]> {
    this.ended = true;
    await Promise.all(this.senders);
    return this.log;
  }
}

const sides = ['stable', 'candidate'] as const;
const evidenceOf = (id: string): WorkerEvidence[] =>
  [...control.evidenceByBoot.values()].filter((one) => one.rollout === id);
const sum = (id: string, read: (one: WorkerEvidence) => number) =>
  evidenceOf(id).reduce((total, one) => total + read(one), 0);
/** `n x` of each arm: as reported, and as the load saw it. */
const reported = (id: string, view: 'ended' | 'closed' = 'ended') =>
  sides.map((side) => ['n', 'x'].map((of) => sum(id, (one) => one[side][view]['error']![of as 'n' | 'x'])).join(' '));
const seen = (log: readonly Entry[]) =>
  sides.map((side) => {
    const own = log.filter(({ arm, pinned }) => arm === side && !pinned);
    return `${own.length} ${own.filter(({ failed }) => failed).length}`;
  });
/** Buckets of all routers together. */
function buckets(id: string, side: 'stable' | 'candidate', set: 'seen' | 'hit'): number[] {
  const joined = Buffer.alloc(bucketCount / 8);
  for (const one of evidenceOf(id)) {
    const bytes = Buffer.from(one[side].closed['error']![set] ?? '', 'base64');
    for (let at = 0; at < bytes.length; at += 1) joined[at]! |= bytes[at]!;
  }
  return [...Array(bucketCount).keys()].filter((bucket) => joined[bucket >> 3]! & (1 << (bucket & 7)));
}
const bucketsOf = (log: readonly Entry[]) =>
  [...new Set(log.map(({ user }) => bucketOf(seedOf(salt), user!)))].sort((a, b) => a - b);

const endpoints = () => ({
  drawn: onTrial(),
  keyed: onTrial({ id: 'keyed' }, { sticky: { header: 'x-user', salt: 's' } }),
  warm: onTrial({ id: 'warm' }),
});

describe('evidence of several routers', () => {
  afterEach(stopAll);

  it('is exact when one is stopped and another started in the middle', async () => {
    await startControl(endpoints());
    const [first, second] = await Promise.all([startRouter(1), startRouter(2)]);
    const early = [new Load(first, 'drawn'), new Load(first, 'keyed')];
    const steady = [new Load(second, 'drawn'), new Load(second, 'keyed')];
    await Promise.all([...early, ...steady].map((load) => load.until(60)));
    await first.router.stop();
    const third = await startRouter(1);
    const late = [new Load(third, 'drawn'), new Load(third, 'keyed')];
    await Promise.all(late.map((load) => load.until(60)));
    const logs = await Promise.all([...early, ...steady, ...late].map((load) => load.stop()));
    await Promise.all([second.router.stop(), third.router.stop()]);

    const drawn = logs.filter((_, at) => at % 2 === 0).flat();
    const keyed = logs.filter((_, at) => at % 2 === 1).flat();
    expect(reported('r')).toEqual(seen(drawn));
    expect(reported('r', 'closed')).toEqual(seen(drawn));
    const judged = keyed.filter(({ user, pinned }) => user && !pinned);
    expect(reported('keyed')).toEqual(seen(judged));
    expect(sum('keyed', (one) => one.keyless)).toBe(keyed.filter(({ user, pinned }) => !user && !pinned).length);
    for (const side of sides) {
      const own = judged.filter(({ arm }) => arm === side);
      expect(buckets('keyed', side, 'seen')).toEqual(bucketsOf(own));
      expect(buckets('keyed', side, 'hit')).toEqual(bucketsOf(own.filter(({ failed }) => failed)));
    }
    // all routers put a user on the same side
    const both = new Set(judged.filter(({ arm }) => arm === 'stable').map(({ user }) => user));
    expect(judged.filter(({ arm, user }) => arm === 'candidate' && both.has(user))).toEqual([]);
  }, 120_000);

  it('is short by one second at most, and never too high, when routers with their workers are killed at any moment', async () => {
    const names = ['alone', 'pair', 'three'];
    const each = names.map((name) => [name, onTrial({ id: name })]);
    server.actFor.set('stable', (...call) => void setTimeout(() => good(...call), 20)); // a load, and no storm
    await startControl({ ...Object.fromEntries(each), warm: onTrial({ id: 'warm' }) });
    const routers = await Promise.all([1, 2, 3].map(startRouter));
    const killed = async (name: string, stand: RouterStand) => {
      const load = new Load(stand, name);
      const olderThan = (at: number) => load.log.filter(({ endedAt, pinned }) => !pinned && endedAt < at).length;
      await until(() => olderThan(Date.now() - 1_500) > 20, 'twenty answers are old');
      await load.until(Math.ceil(load.log.length * (1 + Math.random())));
      const killedAt = Date.now();
      await stand.router.stop('SIGKILL');
      const live = (await load.stop()).filter(({ pinned }) => !pinned).length;
      const counted = sum(name, (one) => one.stable.ended['error']!.n + one.candidate.ended['error']!.n);
      expect(counted, `${name} of ${live}`).toBeGreaterThanOrEqual(olderThan(killedAt - 1_000));
      expect(counted, `${name} of ${live}`).toBeLessThanOrEqual(live + inHand);
    };
    await Promise.all(names.map((name, at) => killed(name, routers[at]!)));
  }, 60_000);
});

describe('one router', () => {
  const sticky = { header: 'x-user', salt: 's' };
  let stand: RouterStand;
  beforeAll(async () => {
    const keyed = onTrial({ id: 'keyed', feedbackKey: key }, { sticky });
    await startControl({ drawn: onTrial({ leaseMs: 1_500 }), keyed, warm: onTrial({ id: 'warm' }) });
    stand = await startRouter(2);
  });
  afterAll(stopAll);

  it('signs a feedback token on replies that an arm gave itself', async () => {
    for (const [user, headers] of [
      ['ann', { 'x-user': 'ann', 'x-request-id': 'q-1' }],
      ['bob', { 'x-user': 'bob' }],
    ] as const) {
      const answer = await ask(stand, 'keyed', headers);
      if (answer.status !== 200) continue;
      const token = answer.headers.get('x-perch-feedback-token')!;
      expect(isSignedBy(token, readFeedbackKey(key))).toBe(true);
      const q = answer.headers.get('x-request-id');
      const claims = { r: 'keyed', e: 1, a: answer.headers.get('x-perch-arm'), b: bucketOf(seedOf(salt), user), q };
      expect(peekFeedbackToken(token)).toMatchObject(claims);
    }
    const unjudged: Record<string, string>[] = [{}, { 'x-user': 'ann', 'x-perch-version': '1' }];
    for (const headers of unjudged)
      expect((await ask(stand, 'keyed', headers)).headers.get('x-perch-feedback-token')).toBeNull();
    expect((await ask(stand, 'warm')).headers.get('x-perch-feedback-token')).toBeNull();
  });

  it('gives the candidate nothing once the lease is over, counts nothing, and goes on when it is heard', async () => {
    const arm = async () => (await ask(stand, 'drawn', { connection: 'close' })).headers.get('x-perch-arm');
    let sent = 0;
    const twenty = async () => {
      sent += 20;
      return (await Promise.all(Array.from({ length: 20 }, arm))).filter((one) => one === 'candidate').length;
    };
    await until(async () => (await twenty()) > 0, 'the candidate is asked');
    control.refuseReports(true);
    await until(async () => (await twenty()) === 0, 'the candidate gets nothing');
    for (let round = 0; round < 5; round += 1) expect(await twenty()).toBe(0);
    expect((await ask(stand, 'drawn', { 'x-perch-version': '2' })).headers.get('x-perch-version')).toBe('2');
    control.refuseReports(false);
    await until(async () => (await twenty()) > 0, 'the candidate is asked again');
    await stand.router.stop();
    const counted = sum('r', (one) => one.stable.closed['error']!.n + one.candidate.closed['error']!.n);
    expect(counted).toBeGreaterThan(0);
    expect(counted).toBeLessThanOrEqual(sent - 5 * 20);
  });
});
