import { AppError, comparison, type RouteRollout } from '@perch/contracts';
import type { CompiledRoute } from '@perch/routing';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Call } from './call.ts';
import type { Deployment } from './deployment.ts';
import type { Dispatch } from './dispatch.ts';
import type { EvidenceBook } from './evidence-book.ts';
import type { PairOutcome } from './evidence-epoch.ts';
import type { FirstOutcome } from './evidence-trial.ts';
import type { FirstAttempt } from './first-attempt.ts';
import { type JudgedReply, judgedNothing } from './judged-reply.ts';
import { eventsOf, Shadow } from './shadow.ts';
import type { ShadowCall } from './shadow-call.ts';
import { TrialStats } from './trial-stats.ts';

const tensor = (...values: number[]): JudgedReply => {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  const outputs = [{ name: 'y', datatype: 'FP32', shape: [1, values.length], bytes }];
  return { sizeBytes: bytes.length, outputs: () => outputs, tensors: () => outputs };
};
const turn = () => new Promise((done) => setImmediate(done));

const told: (PairOutcome | 'dropped')[] = [];
const copies: { call: ShadowCall; answer: (reply: JudgedReply | undefined) => void; fail: (error: unknown) => void }[] =
  [];
const path = {
  copy: (call: ShadowCall) =>
    new Promise<JudgedReply | undefined>((answer, fail) => void copies.push({ call, answer, fail })),
};
let lapsed = false;
let shadow: Shadow;
let gauge: { inFlight: number };
let stats: TrialStats;

beforeEach(() => {
  told.length = 0;
  copies.length = 0;
  lapsed = false;
  gauge = { inFlight: 0 };
  stats = new TrialStats();
  const arm = { gauge, target: { version: 2, outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, -1] }] } };
  const dispatch = { table: () => ({ deployments: new Map([['c', arm as unknown as Deployment]]) }) };
  const evidence = {
    pair: (_route: CompiledRoute, outcome: PairOutcome) => told.push(outcome),
    pairDropped: () => told.push('dropped'),
    isLapsed: () => lapsed,
  };
  shadow = new Shadow(dispatch as unknown as Dispatch, evidence as unknown as EvidenceBook, stats);
});

const spec = {
  metrics: ['error', 'slow', 'contract', 'sad'],
  slowMs: 100,
  shadow: { sample: 0.5, compare: comparison.parse({}) },
};
const rollout = { spec: spec as RouteRollout, stable: { deployment: 's' }, candidate: { deployment: 'c', version: 2 } };
const routeOf = (name: string, idempotent = true) =>
  ({ name, rollout, route: { idempotent } }) as unknown as CompiledRoute;

function send(outcome: Partial<FirstOutcome> = {}, { endpoint = 'e', bytes = 10, reply = tensor(1, 2) } = {}): void {
  const first = {
    rollout,
    reply,
    judgesContract: true,
    outcome: { outcome: 'answered', durationMs: 5, ...outcome },
    isLate: (ms: number) => ms > 10_000,
  };
  const exchange = { head: { headers: {} }, body: [Buffer.alloc(bytes)] };
  const call = { endpoint, route: routeOf(endpoint), requestId: 'r', timeoutMs: 20_000, exchange };
  shadow.send(call as unknown as Call, first as unknown as FirstAttempt, path);
}
/** Our own work makes the next copies rest for a moment. */
async function sendUntilCopied(...given: Parameters<typeof send>): Promise<(typeof copies)[number]> {
  const before = copies.length;
  while (copies.length === before) {
    send(...given);
    await turn();
  }
  told.length = 0;
  return copies.at(-1)!;
}

describe('a copy', () => {
  it('begins in a turn of its own, behind the reply, and is in hand until it is answered', async () => {
    send();
    expect([copies.length, shadow.inFlight, gauge.inFlight]).toEqual([0, 1, 1]);
    await turn();
    expect([copies.length, told.length]).toEqual([1, 0]);
    copies[0]!.answer(tensor(1, 2));
    await turn();
    expect(told).toEqual([{ stable: [], candidate: [], agree: true }]);
    expect([shadow.inFlight, gauge.inFlight]).toEqual([0, 0]);
  });

  it.each([
    ['an equal answer', (copy) => copy.answer(tensor(1, 2)), [], true],
    ['another answer', (copy) => copy.answer(tensor(9, 2)), [], false],
    ['an answer that breaks its contract', (copy) => copy.answer(tensor(Number.NaN, 2)), ['contract'], false],
    [
      'an unreadable answer',
      (copy) => copy.answer({ ...judgedNothing, outputs: () => undefined }),
      ['contract'],
      false,
    ],
    ['a failure', (copy) => copy.fail(new AppError('upstream', 'no')), ['error'], undefined],
    ['a fault of the module', (copy) => copy.fail(new TypeError('no')), ['error'], undefined],
    ['a refusal of what stable took', (copy) => copy.fail(new AppError('invalid', 'no')), [], false],
  ] as [string, (copy: (typeof copies)[number]) => void, string[], boolean | undefined][])(
    'with %s',
    async (_what, end, candidate, agree) => {
      end(await sendUntilCopied());
      await turn();
      expect(told).toEqual([{ stable: [], candidate, ...(agree === undefined ? {} : { agree }) }]);
    },
  );

  it('tells what either side had: stable’s own failure is no agreement, flags are both sides’', async () => {
    const copy = await sendUntilCopied({ outcome: 'failed' });
    copy.call.flag('sad');
    copy.call.flag('unheard');
    copy.answer(tensor(1, 2));
    await turn();
    expect(told).toEqual([{ stable: ['error'], candidate: ['sad'] }]);
  });

  it.each(['left', 'refused'] as const)('is not made of a request that the client %s', async (outcome) => {
    send({ outcome });
    await turn();
    expect([copies.length, told.length, shadow.inFlight]).toEqual([0, 0, 0]);
  });

  it('that no server takes is dropped, one whose lease lapsed meanwhile is forgotten', async () => {
    (await sendUntilCopied()).answer(undefined);
    await turn();
    expect(told).toEqual(['dropped']);
    const copy = await sendUntilCopied();
    lapsed = true;
    copy.answer(tensor(1, 2));
    await turn();
    expect(told).toEqual([]);
  });
});

describe('the room for copies', () => {
  it('is four an endpoint and sixteen in all; what is beyond is dropped at once', async () => {
    for (const endpoint of ['a', 'b', 'c', 'd', 'e']) for (let i = 0; i < 5; i += 1) send({}, { endpoint });
    expect([shadow.inFlight, told.filter((one) => one === 'dropped').length]).toEqual([16, 9]);
    await turn();
    for (const copy of copies) copy.answer(undefined);
    await turn();
    expect([shadow.inFlight, gauge.inFlight]).toEqual([0, 0]);
  });

  it('is 32 MiB of bodies and answers', async () => {
    const bytes = 12 * 1_048_576;
    for (let i = 0; i < 4; i += 1) send({}, { bytes });
    expect([shadow.inFlight, told]).toEqual([2, ['dropped', 'dropped']]);
    await turn();
    for (const copy of copies) copy.answer(undefined);
    await turn();
    told.length = 0;
    await sendUntilCopied({}, { bytes });
  });

  it('rests after its own work nineteen times as long', async () => {
    const busyMs = 20;
    const busy = {
      copy: async () => {
        for (const until = performance.now() + busyMs; performance.now() < until; );
        return undefined;
      },
    };
    const first = { rollout, outcome: { outcome: 'answered', durationMs: 5 }, isLate: () => false };
    const call = { endpoint: 'e', route: routeOf('e'), requestId: 'r', timeoutMs: 1, exchange: { head: {}, body: [] } };
    const begun = performance.now();
    shadow.send(call as unknown as Call, first as unknown as FirstAttempt, busy);
    await turn();
    await turn();
    told.length = 0;
    send();
    expect(told).toEqual(['dropped']);
    await sendUntilCopied();
    expect(performance.now() - begun).toBeGreaterThanOrEqual(busyMs * 20);
  });
});

describe('which requests are copied', () => {
  it('is a share of those that may run twice, of a rollout that wants it', () => {
    expect([0, 0.49, 0.5, 0.99].map((draw) => shadow.wants(routeOf('e'), draw))).toEqual([true, true, false, false]);
    expect(shadow.wants(routeOf('e', false), 0)).toBe(false);
    expect(shadow.wants({ ...routeOf('e'), rollout: undefined }, 0)).toBe(false);
  });
});

describe('events of one side', () => {
  it.each([
    [{ outcome: 'answered', durationMs: 100 }, []],
    [{ outcome: 'answered', durationMs: 101 }, ['slow']],
    [{ outcome: 'answered', durationMs: 101, broken: true, flags: ['sad'] }, ['slow', 'contract', 'sad']],
    [{ outcome: 'failed', durationMs: 9_000, broken: true }, ['error']],
    [{ outcome: 'refused', durationMs: 9_000 }, []],
  ] as [FirstOutcome, string[]][])('%j: %j', (outcome, events) => {
    expect(eventsOf(outcome, 100)).toEqual(events);
    if (!events.includes('error')) expect(eventsOf(outcome, null)).toEqual(events.filter((one) => one !== 'slow'));
  });
});
