import {
  bucketCount, type RouteRollout, type RouteTarget, type WorkerEvidence, workerEvidence,
} from '@perch/contracts'; // biome-ignore format: one list
import { type CompiledRoute, compileRoute } from '@perch/routing';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Side } from './call.ts';
import { EvidenceBook } from './evidence-book.ts';
import { settleMs } from './evidence-cohorts.ts';
import { EvidenceLease, monotonicMs } from './evidence-lease.ts';
import type { EvidenceTrial, FirstOutcome } from './evidence-trial.ts';

const target = (deployment: string, version: number): RouteTarget => ({
  deployment,
  version,
  tritonModel: 'm',
  servers: ['s'],
  maxBatchSize: 0,
  inputs: [],
  outputs: [],
  processing: { builtin: 'passthrough', options: {} },
  files: [],
});
const rollout: RouteRollout = {
  id: 'r',
  epoch: 1,
  stable: 'old',
  candidate: 'new',
  salt: 'salt',
  leaseMs: 15_000,
  slowMs: 100,
  slowGraceMs: 0,
  metrics: ['slow', 'contract', 'low_confidence'],
  fallback: null,
  shadow: null,
  feedbackKey: null,
};
const routeOf = (fields: Partial<RouteRollout> = {}, sticky = false): CompiledRoute =>
  compileRoute('e', {
    arms: [
      { deployment: 'old', share: 0.5 },
      { deployment: 'new', share: 0.5 },
    ],
    targets: [target('old', 1), target('new', 2)],
    access: 'public',
    timeoutMs: 10_000,
    maxBodyBytes: 1_000,
    idempotent: true,
    rollout: { ...rollout, ...fields },
    ...(sticky ? { sticky: { header: 'x-user', salt: 's' } } : {}),
  });

/** By `performance.now()`; the start of a cohort. */
const start = Math.ceil(performance.now() / 1_000) * 1_000;
const fine: FirstOutcome = { outcome: 'answered', durationMs: 5, broken: false };

let book: EvidenceBook;
let runs = 0;
beforeEach(() => {
  const lease = new EvidenceLease();
  lease.accepted(monotonicMs());
  book = new EvidenceBook(lease);
});

const begin = (route: CompiledRoute, at: number, side: Side = 'candidate', bucket = -1) =>
  book.begin({ route, pin: undefined, side, bucket, lapsed: false }, start + at);
/** What is told of all that arrived before `at`. */
const changed = (at: number, all = false) => book.changed(start + at + settleMs, all);
const tell = (at: number, all = false) => {
  const told = changed(at, all);
  expect(told.length).toBeLessThan(2);
  return told[0] && workerEvidence.parse(told[0]);
};
/** `n x` of each metric that anything was counted of. */
const shown = (counts: Record<string, { n: number; x: number }>) =>
  Object.fromEntries(Object.entries(counts).flatMap(([metric, { n, x }]) => (n > 0 ? [[metric, `${n} ${x}`]] : [])));

describe('what one request counts for', () => {
  const all = { error: '1 0', slow: '1 0', contract: '1 0', low_confidence: '1 0' };
  it.each<[string, FirstOutcome, Record<string, string>]>([
    ['a good reply', fine, all],
    ['a late one', { ...fine, durationMs: 101 }, { ...all, slow: '1 1' }],
    ['one at the limit', { ...fine, durationMs: 100 }, all],
    ['one that broke its contract', { ...fine, broken: true }, { ...all, contract: '1 1' }],
    ['one that nobody checked', { outcome: 'answered', durationMs: 5 }, { ...all, contract: undefined as never }],
    ['one with a flag', { ...fine, flags: ['low_confidence'] }, { ...all, low_confidence: '1 1' }],
    ['flags nobody asked for, and names of other metrics', { ...fine, flags: ['x', 'error', 'slow', 'contract'] }, all],
    ['a failure, however late', { outcome: 'failed', durationMs: 900 }, { error: '1 1' }],
    ['bad input', { outcome: 'refused', durationMs: 1 }, { error: '1 0' }],
    ['a client that left soon', { outcome: 'left', durationMs: 5 }, {}],
    ['a client that waited too long', { outcome: 'left', durationMs: 101 }, { slow: '1 1' }],
  ])('%s', (_, outcome, counts) => {
    const route = routeOf();
    const trial = begin(route, 0)!;
    trial.firstOutcome(outcome);
    trial.firstOutcome({ outcome: 'failed', durationMs: 1 });
    const wanted = JSON.parse(JSON.stringify(counts));
    const told = tell(1_000);
    expect(shown(told?.candidate.ended ?? {})).toEqual(wanted);
    expect(shown(told?.candidate.closed ?? {})).toEqual(wanted);
    expect(shown(told?.stable.ended ?? {})).toEqual({});
  });
  it('is not judged by slow in the first moments of an epoch, nor without a limit', () => {
    const graced = routeOf({ slowGraceMs: 500 });
    for (const at of [0, 499, 500]) begin(graced, at)!.firstOutcome({ ...fine, durationMs: 200 });
    expect(shown(tell(1_000)!.candidate.ended)).toMatchObject({ error: '3 0', slow: '1 1' });
    const unlimited = routeOf({ epoch: 2, slowMs: null });
    begin(unlimited, 0)!.firstOutcome({ ...fine, durationMs: 9_000 });
    expect(shown(tell(1_000)!.candidate.ended)).toEqual({ error: '1 0', contract: '1 0', low_confidence: '1 0' });
  });
});

describe('whom nobody judges', () => {
  it.each<[string, Partial<Parameters<EvidenceBook['begin']>[0]>]>([
    ['a pinned version', { pin: 2 }],
    ['a lapsed lease', { lapsed: true, side: 'stable' }],
    ['an endpoint without a rollout', { route: { ...routeOf(), rollout: undefined } }],
    ['a third side', { side: undefined }],
  ])('%s', (_, fields) => {
    const call = { route: routeOf(), pin: undefined, side: 'candidate' as Side | undefined, bucket: -1, lapsed: false };
    expect(book.begin({ ...call, ...fields }, start)).toBeUndefined();
    expect(tell(5_000)).toBeUndefined();
  });
  it('a request without the sticky key, which is only counted as such', () => {
    const trial = begin(routeOf({}, true), 0)!;
    expect(trial.keyless).toBe(true);
    trial.firstOutcome({ outcome: 'failed', durationMs: 1 });
    trial.fellBack();
    const told = tell(1_000)!;
    expect(told).toMatchObject({ keyless: 1, fallbacks: 1 });
    expect(shown(told.candidate.ended)).toEqual({});
  });
});

describe('cohorts', () => {
  const counts = (told = tell(0)) =>
    [told?.stable, told?.candidate].map((arm) => [arm?.ended['error']?.n, arm?.closed['error']?.n]);

  it('count as ended one by one when they are old enough, and close for both arms together once all of a second ended', () => {
    const route = routeOf();
    const [slow, quick] = [begin(route, 0)!, begin(route, 10, 'stable')!];
    quick.firstOutcome(fine);
    expect(counts(tell(10))).toEqual([[0, 0], [0, 0]]); // which of them count yet must not depend on who is quick
    expect(counts(tell(11))).toEqual([[1, 0], [0, 0]]);
    expect(tell(1_000)).toBeUndefined();
    expect(tell(2_500)).toBeUndefined();
    slow.firstOutcome(fine);
    expect(counts(tell(2_600))).toEqual([[1, 1], [1, 1]]);
    expect(tell(9_000)).toBeUndefined();
  }); // biome-ignore format: rows
  it('tell how many of their requests are on their way, by arm, until none is', () => {
    const open = (told: WorkerEvidence | undefined) => told && [told.stable.open, told.candidate.open];
    const route = routeOf();
    const [first, second] = [begin(route, 0, 'stable')!, begin(route, 10)!];
    const young = begin(route, 1_500, 'stable')!;
    expect(open(tell(1_500))).toEqual([1, 1]);
    expect(open(tell(1_501))).toEqual([2, 1]);
    first.firstOutcome({ outcome: 'left', durationMs: 5 }); // nobody judges it
    expect(open(tell(2_100))).toEqual([1, 1]);
    second.firstOutcome(fine);
    young.firstOutcome(fine);
    expect(open(tell(2_200))).toEqual([0, 0]);
    begin(route, 2_300, 'stable')!.firstOutcome(fine);
    expect(open(tell(2_400, true))).toEqual([0, 0]);
  });
  it('close in their order: a quick second does not overtake a slow one', () => {
    const route = routeOf();
    const slow = begin(route, 0)!;
    begin(route, 1_500)!.firstOutcome(fine);
    expect(counts(tell(3_000))[1]).toEqual([1, 0]);
    slow.firstOutcome({ outcome: 'failed', durationMs: 4_000 });
    expect(counts(tell(4_000))[1]).toEqual([2, 2]);
  });
  it('do not wait for one past its time: that is a failure, whatever comes of it', () => {
    const route = routeOf();
    const lost = begin(route, 0)!;
    expect(counts(tell(10_999 - settleMs))[1]).toEqual([0, 0]);
    expect(counts(tell(11_000 - settleMs))[1]).toEqual([1, 1]);
    lost.firstOutcome(fine);
    const next = begin(route, 12_000)!;
    next.firstOutcome(fine);
    expect(shown(tell(13_000)!.candidate.closed)['error']).toBe('2 1');
  });
  it('close at once when the process ends', () => {
    begin(routeOf(), 0)!.firstOutcome(fine);
    expect(counts(tell(1, true))[1]).toEqual([1, 1]);
  });
  it('count a request in the epoch that it came in', () => {
    const early = begin(routeOf(), 0)!;
    begin(routeOf({ epoch: 2 }), 100)!.firstOutcome(fine);
    early.firstOutcome(fine);
    const told = changed(1_000);
    expect(told.map(({ epoch, candidate }) => [epoch, candidate.closed['error']!.n])).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });
});

describe('whatever comes in whatever order', () => {
  const call = fc.record({
    at: fc.integer({ min: 0, max: 6_000 }),
    takes: fc.integer({ min: 1, max: 9_999 }),
    /** `lost`: nothing is ever heard of it. */
    how: fc.constantFrom('answered', 'failed', 'lost'),
    side: fc.constantFrom<Side>('stable', 'candidate'),
  });
  const looks = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 8 });

  it('closed is what arrived before some second, ended and open are all that are old enough; in the end both are everything, once', () => {
    fc.assert(
      fc.property(fc.array(call, { maxLength: 25 }), looks, (calls, times) => {
        runs += 1;
        const route = routeOf({ id: `r${runs}` });
        const failed = ({ how }: (typeof calls)[number]) => how !== 'answered';
        const trials: EvidenceTrial[] = [];
        let last: WorkerEvidence | undefined;
        const steps = [
          ...calls.map(({ at, side }, place) => ({
            at,
            go: () => {
              trials[place] = begin(route, at, side)!;
            },
          })),
          ...calls.flatMap(({ how, ...one }, place) => {
            const go = () => how !== 'lost' && trials[place]!.firstOutcome({ outcome: how, durationMs: one.takes });
            return [{ at: one.at + one.takes, go }];
          }),
          // a look tells what is old enough: it comes so much later than what it tells of
          ...times.map((at) => ({ at: at + settleMs, go: () => check(at) })),
        ].sort((a, b) => a.at - b.at);
        const check = (at: number, all = false) => {
          last = tell(at, all) ?? last;
          if (!last) return;
          const seconds = [0, 1, 2, 3, 4, 5, 6, 7].map((second) => {
            const early = calls.filter((one) => one.at < second * 1_000);
            return `${early.length} ${early.filter(failed).length}`;
          });
          const [stable, candidate] = [last.stable.closed['error']!, last.candidate.closed['error']!];
          expect(seconds).toContain(`${stable.n + candidate.n} ${stable.x + candidate.x}`);
          for (const side of ['stable', 'candidate'] as const) {
            const old = calls.filter((one) => one.side === side && (all || one.at < at));
            expect(last[side].ended['error']!.n + last[side].open!).toBe(old.length);
          }
        };
        for (const { go } of steps) go();
        check(30_000, true);
        for (const side of ['stable', 'candidate'] as const) {
          const own = calls.filter((one) => one.side === side);
          const counts = { n: own.length, x: own.filter(failed).length };
          expect(last?.[side].closed['error'] ?? { n: 0, x: 0 }).toEqual(counts);
          expect(last?.[side].closed).toEqual(last?.[side].ended);
        }
      }),
    );
  });
});

describe('sets of buckets', () => {
  const bits = (text: string | undefined) =>
    text === undefined
      ? undefined
      : [...Buffer.from(text, 'base64')].flatMap((byte, at) =>
          [0, 1, 2, 3, 4, 5, 6, 7].flatMap((bit) => (byte & (1 << bit) ? [at * 8 + bit] : [])),
        );

  it('hold who was seen and who had the event, and are told only when they grew', () => {
    const route = routeOf({}, true);
    for (const bucket of [3, 9, 9, bucketCount - 1]) begin(route, 0, 'candidate', bucket)!.firstOutcome(fine);
    begin(route, 0, 'candidate', 9)!.firstOutcome({ outcome: 'failed', durationMs: 1 });
    const late = begin(route, 999, 'candidate', 9)!;
    const first = tell(1_000)!.candidate;
    expect(bits(first.ended['error']!.seen)).toEqual([3, 9, bucketCount - 1]);
    expect(bits(first.ended['error']!.hit)).toEqual([9]);
    expect(first.ended['slow']).toMatchObject({ n: 4, x: 0 });
    expect(first.ended['slow']!.hit).toBeUndefined();
    expect(first.closed['error']).toEqual({ n: 0, x: 0 });
    late.firstOutcome(fine);
    begin(route, 1_600, 'candidate', 3)!.firstOutcome(fine);
    const second = tell(2_000)!.candidate;
    expect(second.ended['error']).toEqual({ n: 7, x: 1 });
    expect(bits(second.closed['error']!.seen)).toEqual([3, 9, bucketCount - 1]);
    expect(bits(second.closed['error']!.hit)).toEqual([9]);
  });
  it('are none where requests are drawn one by one', () => {
    begin(routeOf(), 0)!.firstOutcome(fine);
    expect(tell(1_000)!.candidate.ended['error']).toEqual({ n: 1, x: 0 });
  });
});

describe('pairs', () => {
  it('count agreement where compared, and events that only one side had', () => {
    const route = routeOf();
    book.pair(route, { stable: [], candidate: [], agree: true }, start);
    book.pair(route, { stable: ['slow'], candidate: ['slow', 'contract'], agree: false }, start);
    book.pair(route, { stable: ['error'], candidate: [] }, start);
    book.pairDropped(route, start);
    const { pairs } = tell(1_000)!;
    const discordant = { contract: { stable: 0, candidate: 1 }, error: { stable: 1, candidate: 0 } };
    expect(pairs).toEqual({ pairs: 3, compared: 2, agree: 1, dropped: 1, discordant });
  });
  it('are none while the lease is over', () => {
    const lapsed = new EvidenceBook(new EvidenceLease());
    lapsed.pair(routeOf(), { stable: [], candidate: [] }, start);
    expect(lapsed.isLapsed(routeOf(), start)).toBe(true);
    expect(lapsed.changed(start + 9_000)).toEqual([]);
  });
});

describe('epochs that left the table', () => {
  it('are forgotten after a day, those in it never, so that their counts do not begin anew', () => {
    const [gone, here] = [routeOf(), routeOf({ id: 'other' })];
    const dayMs = 24 * 3_600_000;
    for (const route of [gone, here]) begin(route, 0)!.firstOutcome(fine);
    expect(changed(1_000)).toHaveLength(2);
    book.keepOnly([here], start + 2_000);
    expect(changed(dayMs + 2_001)).toEqual([]);
    for (const route of [gone, here]) begin(route, dayMs + 100_000)!.firstOutcome(fine);
    const told = changed(dayMs + 101_000);
    expect(Object.fromEntries(told.map((one) => [one.rollout, one.candidate.closed['error']!.n]))).toEqual({
      r: 1,
      other: 2,
    });
  });
});

describe('the lease', () => {
  it('runs from when the accepted report left, and is over before there ever was one', () => {
    const lease = new EvidenceLease();
    expect(lease.isOver(15_000, performance.now())).toBe(true);
    lease.accepted(monotonicMs() - 10_000);
    expect(lease.isOver(15_000, performance.now())).toBe(false);
    expect(lease.isOver(15_000, performance.now() + 5_001)).toBe(true);
    lease.accepted(monotonicMs() - 14_000); // an older one, told late
    expect(lease.isOver(15_000, performance.now() + 4_000)).toBe(false);
  });
});
