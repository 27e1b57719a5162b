import type { WorkerEvidence } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hexOf, setOf } from './bucket-set.decide.ts';
import { requestCounts } from './merge.plan.ts';
import { type CountRow, planReport, type ReportedRollout, rowKey } from './report.decide.ts';

const rollout: ReportedRollout = { id: 'r1', endpoint: 'text/a', epoch: 3, over: false, sticky: false };
const known = (...more: Partial<ReportedRollout>[]) =>
  new Map([rollout, ...more.map((one) => ({ ...rollout, ...one }))].map((one) => [one.id, one]));

const arm = (n: number, x: number) => ({ ended: { error: { n, x } }, closed: { error: { n, x: Math.min(n, x) } } });
const row = (change: Partial<WorkerEvidence> = {}): WorkerEvidence => ({
  rollout: 'r1',
  epoch: 3,
  worker: 1,
  stable: arm(90, 1),
  candidate: arm(10, 2),
  fallbacks: 0,
  keyless: 0,
  ...change,
});
const none = new Map<string, CountRow>();
const storedOf = (rows: readonly CountRow[]) => new Map(rows.map((one) => [rowKey(one), one]));
const refusals = (evidence: WorkerEvidence[], rollouts = known(), stored = none) =>
  planReport(evidence, rollouts, stored).refused.map(({ reason }) => reason);

describe('planReport', () => {
  it('takes what is new and wakes the endpoint at once when the candidate had an event', () => {
    const plan = planReport([row()], known(), none);
    expect(plan).toMatchObject({ rows: [{ turn: 1, counts: { candidate: { ended: { error: { n: 10, x: 2 } } } } }] });
    expect([...plan.wake]).toEqual([['text/a', true]]);
  });

  it('asks for a calm look when only good replies came in, and for none when nothing did', () => {
    const stored = storedOf(planReport([row()], known(), none).rows);
    expect([...planReport([row({ stable: arm(95, 1) })], known(), stored).wake]).toEqual([['text/a', false]]);
    expect(planReport([row()], known(), stored)).toMatchObject({ rows: [], refused: [] });
  });

  it.each<[string, Partial<WorkerEvidence>, Partial<ReportedRollout>, string[]]>([
    ['an unknown rollout', { rollout: 'r9' }, {}, ['unknown_rollout']],
    ['a finished rollout', { rollout: 'r2' }, { id: 'r2', over: true }, ['finished_rollout']],
    ['an epoch to come', { epoch: 4 }, {}, ['future_epoch']],
    ['an epoch that is over: late, not wrong', { epoch: 0 }, {}, []],
    ['more events than requests', { stable: arm(1, 2) }, {}, ['malformed']],
    ['a worker that no process has', { worker: 2 ** 31 }, {}, ['malformed']],
    ['a metric that is no name', { stable: { ended: { '; drop': { n: 1, x: 0 } }, closed: {} } }, {}, ['malformed']],
    [
      'buckets that there are not',
      { stable: { ended: { error: { n: 1, x: 0, seen: Buffer.alloc(1_260, 1).toString('base64') } }, closed: {} } },
      {},
      ['malformed'],
    ],
    [
      'more that agree than were compared',
      { pairs: { pairs: 3, compared: 1, agree: 2, dropped: 0, discordant: {} } },
      {},
      ['malformed'],
    ],
  ])('leaves out %s', (_what, change, other, wanted) => {
    expect(refusals([row(change)], known(other))).toEqual(wanted);
  });

  it('leaves out what goes backwards in any figure, and keeps the neighbours', () => {
    const pairs = { pairs: 5, compared: 5, agree: 4, dropped: 1, discordant: { error: { stable: 0, candidate: 1 } } };
    const before = row({ pairs, fallbacks: 3, keyless: 2, candidate: { ...arm(10, 2), bad: 2 } });
    const stored = storedOf(planReport([before], known(), none).rows);
    const back: Partial<WorkerEvidence>[] = [
      { stable: arm(89, 1) },
      { stable: arm(90, 0) },
      { candidate: { ...arm(10, 2), bad: 1 } },
      { candidate: { ended: {}, closed: { error: { n: 10, x: 2 } }, bad: 2 } },
      { fallbacks: 2 },
      { keyless: 0 },
      { pairs: { ...pairs, agree: 3 } },
      { pairs: { ...pairs, discordant: {} } },
    ];
    for (const change of back) {
      const plan = planReport([{ ...before, ...change }, row({ worker: 2 })], known(), stored);
      expect(plan.refused).toEqual([{ rollout: 'r1', epoch: 3, worker: 1, reason: 'backwards' }]);
      expect(plan.rows.map(({ worker }) => worker)).toEqual([2]);
    }
  });

  it('takes who is on the way as it is told last: it falls, and is no figure that went backwards', () => {
    const withOpen = (open: number) => row({ stable: { ...arm(90, 1), open }, candidate: { ...arm(10, 2), open: 0 } });
    const stored = storedOf(planReport([withOpen(7)], known(), none).rows);
    expect([...stored.values()][0]!.counts.stable.open).toBe(7);
    const { rows, refused } = planReport([withOpen(2)], known(), stored);
    expect(rows).toMatchObject([{ turn: 2, counts: { stable: { open: 2 }, candidate: { open: 0 } } }]);
    expect(refused).toEqual([]);
  });

  it('joins buckets of all workers, and keeps none where there is no sticky key', () => {
    const withSet = (worker: number, buckets: number[]) =>
      row({
        worker,
        stable: {
          ended: { error: { n: 9, x: 1, hit: Buffer.from(hexOf(setOf(buckets)), 'hex').toString('base64') } },
          closed: {},
        },
      });
    const evidence = [withSet(1, [1, 2]), withSet(2, [2, 3])];
    expect(planReport(evidence, known(), none).sets).toEqual([]);
    const { sets } = planReport(evidence, known({ sticky: true }), none);
    expect(sets).toHaveLength(1);
    expect(sets[0]).toMatchObject({ arm: 'stable', phase: 'ended', metric: 'error', hit: setOf([1, 2, 3]) });
    expect(sets[0]!.seen).toEqual(setOf([1, 2, 3])); // who had the event was judged
  });

  it('takes the later one when a report names a row twice', () => {
    const plan = planReport([row(), row({ stable: arm(95, 1) }), row({ stable: arm(80, 1) })], known(), none);
    expect(plan.rows).toMatchObject([{ turn: 1, counts: { stable: { ended: { error: { n: 95 } } } } }]);
    expect(plan.refused).toMatchObject([{ reason: 'backwards' }]);
  });

  /** Workers count up; reports are lost, late, doubled; workers and routers die and begin anew under other names. */
  it('ends with what was told last, whatever the order, and never with more than was counted', () => {
    const history = fc.array(fc.tuple(fc.nat(20), fc.nat(3)), { minLength: 1, maxLength: 8 });
    const delivery = fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.array(history, { minLength: 1, maxLength: 4 }), delivery, (workers, deliveries) => {
        const reports = workers.map((steps, worker) => {
          let [n, x] = [0, 0];
          return steps.map(([good, bad]) => {
            n += good + bad;
            x += bad;
            return row({ worker, candidate: arm(n, x), stable: arm(0, 0) });
          });
        });
        let stored: CountRow[] = [];
        const heard = workers.map(() => -1);
        for (const [which, step] of deliveries) {
          const worker = which % workers.length;
          const at = step % reports[worker]!.length;
          heard[worker] = Math.max(heard[worker]!, at);
          const { rows } = planReport([reports[worker]![at]!], known(), storedOf(stored));
          stored = [...stored.filter((one) => !rows.some((other) => rowKey(other) === rowKey(one))), ...rows];
        }
        const total = requestCounts(stored, [{ epoch: 3, share: 0.1, since: new Date(0) }], 'error');
        const wanted = heard.reduce((sum, at, worker) => sum + (reports[worker]![at]?.candidate.ended['error']?.n ?? 0), 0); // biome-ignore format: one sum
        expect(total.candidate.n).toBe(wanted);
      }),
      { numRuns: 100 },
    );
  });
});
