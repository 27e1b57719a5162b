import { rolloutPolicy } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { emptyBuckets } from '../statistics/buckets.decide.ts';
import { rollbackEvidence } from '../statistics/rollback-evidence.decide.ts';
import { setOf } from './bucket-set.decide.ts';
import type { EvidenceScope } from './evidence.entity.ts';
import { bucketReading, type CountedRow, countedMetrics, type SetLookup } from './merge.plan.ts';
import { type EvidenceSight, readEvidence } from './read.plan.ts';

const now = new Date(1_700_000_000_000);
const scope = (change: Partial<EvidenceScope> = {}): EvidenceScope => ({
  id: 'r1',
  endpoint: 'text/a',
  epochs: [{ epoch: 4, share: 0.25, since: new Date(now.getTime() - 120_000) }],
  policy: rolloutPolicy.parse({}),
  stickyHeader: null,
  baseline: null,
  ...change,
});
const row = (candidate: Record<string, { n: number; x: number }>, bad?: number): CountedRow => ({
  epoch: 4,
  counts: {
    stable: { ended: {}, closed: {} },
    candidate: { ended: candidate, closed: {}, ...(bad === undefined ? {} : { bad }) },
    fallbacks: 0,
    keyless: 0,
  },
});
const sight = (rows: CountedRow[]): EvidenceSight => ({
  rows,
  sets: [],
  now,
  at: null,
  recent: null,
  feedback: [],
  provided: [],
});

describe('readEvidence', () => {
  it('of nothing says that there is nothing', () => {
    expect(readEvidence(scope(), sight([]))).toMatchObject({
      candidateEvents: 0,
      pairs: null,
      requestsPerMinuteNow: 0,
      sinceEvidenceMs: null,
      holds: [],
    });
    expect(readEvidence(scope({ epochs: [] }), sight([])).metrics[0]).toMatchObject({
      epochs: [],
      stable: { n: 0, x: 0 },
    });
  });

  it.each([
    ['one request that failed', [row({ error: { n: 5, x: 1 } })], 1],
    ['one request, slow and broken: not two', [row({ slow: { n: 5, x: 1 }, contract: { n: 5, x: 1 } })], 1],
    ['two requests, as the router tells them apart', [row({ slow: { n: 5, x: 1 }, error: { n: 5, x: 1 } }, 2)], 2],
    ['requests of two workers are never the same', [row({ error: { n: 5, x: 1 } }), row({ slow: { n: 5, x: 1 } })], 2],
    ['a metric that nobody judges by', [row({ other: { n: 5, x: 4 } })], 0],
  ])('tells how many of the candidate were bad: %s', (_what, rows, wanted) => {
    expect(readEvidence(scope(), sight(rows)).candidateEvents).toBe(wanted);
  });

  it('says how many requests a minute there are now, keyless ones too', () => {
    const counted = row({ error: { n: 100, x: 0 } });
    const rows = [counted, { ...counted, counts: { ...counted.counts, keyless: 20 } }];
    expect(readEvidence(scope(), sight(rows)).requestsPerMinuteNow).toBe(110);
    const nowWith = (recent: EvidenceSight['recent']) =>
      readEvidence(scope(), { ...sight(rows), recent }).requestsPerMinuteNow;
    expect(nowWith({ requests: 900, spanMs: 30_000 })).toBe(1_800); // traffic grew just now, long after the epoch began
    expect(nowWith({ requests: 900, spanMs: 3_000 })).toBe(110); // too short to say
  });
});

describe('what the rollback rule takes of requests', () => {
  const arm = (ended: number, closed: number, open?: number) => ({
    ended: { error: { n: 50, x: ended } },
    closed: { error: { n: 40, x: closed } },
    ...(open === undefined ? {} : { open }),
  });
  const worker = (stable: ReturnType<typeof arm>, candidate: ReturnType<typeof arm>): CountedRow => ({
    epoch: 4,
    counts: { stable, candidate, fallbacks: 0, keyless: 0 },
  });
  const error = (...rows: CountedRow[]) => readEvidence(scope(), sight(rows)).metrics[0]!;

  it.each([
    ['whole cohorts of a worker that does not tell who is on the way', [worker(arm(5, 1), arm(9, 2))], [1, 2]],
    ['else all that ended, with stable on its way as events', [worker(arm(5, 1, 3), arm(9, 2, 4))], [8, 9, 3]],
    ['nobody on the way', [worker(arm(5, 1, 0), arm(9, 2, 4))], [5, 9]],
    ['each worker for itself', [worker(arm(5, 1, 3), arm(9, 2, 4)), worker(arm(5, 1), arm(9, 2))], [9, 11, 3]],
  ])('%s', (_what, rows, [stableEvents, candidateEvents, stableOpen]) => {
    const counted = error(...rows);
    const open = stableOpen === undefined ? {} : { stableOpen };
    expect(counted.epochs).toEqual([{ epoch: 4, share: 0.25, stableEvents, candidateEvents, ...open }]);
    expect(counted.stable).toEqual({ n: 40 * rows.length, x: rows.length }); // promotion: whole cohorts
  });
});

describe('countedMetrics', () => {
  it('leaves out what is off, what waits for feedback, and slow without a latency', () => {
    const flags = [{ name: 'unsure' }, { name: 'wrong', feedbackWithinMs: 60_000 }];
    expect(countedMetrics(rolloutPolicy.parse({ flags, contract: false }), 80)).toEqual(['error', 'slow', 'unsure']);
    expect(countedMetrics(rolloutPolicy.parse({}), null)).toEqual(['error', 'contract']);
  });
});

describe('bucketReading', () => {
  /** Users of which some always fail: arms are equal, and yet the same few fail in every epoch. */
  it('does not roll back equal versions because of users who fail again and again', () => {
    let state = 1;
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const shares = [0.01, 0.05, 0.25, 0.5];
    const epochs = shares.map((share, epoch) => ({ epoch, share, since: now }));
    const none = emptyBuckets();
    let rolledBack = 0;
    for (let run = 0; run < 200; run += 1) {
      const failing = Array.from({ length: 25 }, () => Math.floor(random() * 10_000));
      const hits = shares.map((share) => {
        const seen = failing.filter(() => random() < 0.7);
        const [low, high] = [seen.filter((one) => one < share * 10_000), seen.filter((one) => one >= share * 10_000)];
        return { candidate: setOf(low), stable: setOf(high) };
      });
      const setsOf: SetLookup = (epoch, arm) => ({ seen: none, hit: hits[epoch]![arm] });
      const looks = epochs.map((_, at) => bucketReading('error', epochs.slice(0, at + 1), setsOf).epochs);
      if (looks.some((counted) => rollbackEvidence(counted, 1) >= Math.log(20))) rolledBack += 1;
    }
    expect(rolledBack).toBeLessThanOrEqual(10);
  });
});
