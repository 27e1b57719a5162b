import { randomUUID } from 'node:crypto';
import type { WorkerEvidence } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EvidenceService } from '../../libs/promotion/src/evidence/evidence.service.ts';
import { armOf, bucketsText, EvidenceStand, workerRow } from '../support/evidence.ts';

let stand: EvidenceStand;
beforeAll(async () => {
  stand = await EvidenceStand.start();
});
afterAll(() => stand.close());

const [r1, r2] = [randomUUID(), randomUUID()];
const take = (router: string, bootId: string, ...rows: WorkerEvidence[]) =>
  stand.get(EvidenceService).take(router, bootId, rows);
const errorOf = async (scope: Parameters<EvidenceStand['read']>[0]) =>
  (await stand.read(scope)).metrics.find(({ metric }) => metric === 'error')!;
const counted = (metrics: string, reason: string) =>
  Number(new RegExp(`perch_evidence_refused_total\\{reason="${reason}"\\} (\\d+)`).exec(metrics)?.[1] ?? 0);

describe('evidence of routers', () => {
  it('adds up workers, boots and routers, and wakes whoever decides', async () => {
    const scope = await stand.rollout({ shares: [0.01, 0.25] });
    await take(r1, 'boot-1', workerRow(scope.id), workerRow(scope.id, { worker: 2, epoch: 1, fallbacks: 3 }));
    await take(r1, 'boot-2', workerRow(scope.id, { worker: 1, epoch: 1 }));
    await take(r2, 'boot-3', workerRow(scope.id, { worker: 1, epoch: 1, keyless: 4 }));
    expect(await stand.woken()).toEqual([scope.endpoint]);
    const evidence = await stand.read(scope);
    expect(evidence).toMatchObject({
      unit: 'request',
      candidateEvents: 8,
      fallbacks: 3,
      keyless: 4,
      requests: { stable: 225, candidate: 75 },
      pairs: null,
      feedback: [],
      holds: [],
    });
    expect(evidence.metrics.map(({ metric }) => metric)).toEqual(['error', 'slow', 'contract']);
    expect(await errorOf(scope)).toEqual({
      metric: 'error',
      epochs: [
        { epoch: 0, share: 0.01, stableEvents: 1, candidateEvents: 2 },
        { epoch: 1, share: 0.25, stableEvents: 3, candidateEvents: 6 },
      ],
      stable: { n: 225, x: 3 },
      candidate: { n: 75, x: 6 },
      whole: { stable: { n: 300, x: 4 }, candidate: { n: 100, x: 8 } },
    });
    // of the current epoch, which began a minute ago
    expect(Math.abs(evidence.requestsPerMinuteNow - 304)).toBeLessThan(30);
    expect(evidence.sinceEvidenceMs).toBeLessThan(10_000);
  });

  it('counts a report once, however often and in whatever order it comes, and from whomever at the same time', async () => {
    const scope = await stand.rollout();
    const steps = [10, 20, 30, 40].map((n) =>
      workerRow(scope.id, { candidate: armOf({ error: { n, x: n / 10 } }), stable: armOf({}) }),
    );
    await Promise.all([3, 0, 2, 1, 3, 2].map((at) => take(r1, 'boot', steps[at]!)));
    expect((await errorOf(scope)).candidate).toEqual({ n: 40, x: 4 });
    await stand.woken();
    await take(r1, 'boot', steps[3]!);
    expect(await stand.woken()).toEqual([]); // nothing new: nobody is woken
  });

  it('leaves out what goes backwards, is of a later epoch, of a finished or unknown rollout, and takes the rest', async () => {
    const [scope, other] = [await stand.rollout(), await stand.rollout()];
    const over = await stand.rollout({ state: 'rolled_back' });
    await take(r1, 'boot', workerRow(scope.id));
    const before = await stand.shownMetrics();
    await take(
      r1,
      'boot',
      workerRow(scope.id, { stable: armOf({ error: { n: 74, x: 1 } }) }),
      workerRow(scope.id, { epoch: 7 }),
      workerRow(over.id),
      workerRow(randomUUID()),
      workerRow("'; drop table rollouts; --"),
      workerRow(other.id, { worker: 2 ** 40 }),
      workerRow(other.id, { candidate: armOf({ error: { n: 1, x: 2 } }) }),
      workerRow(other.id),
    );
    const after = await stand.shownMetrics();
    const grown = (reason: string) => counted(after, reason) - counted(before, reason);
    expect(['backwards', 'future_epoch', 'finished_rollout', 'unknown_rollout', 'malformed'].map(grown)).toEqual([
      1, 1, 1, 2, 2,
    ]);
    expect((await errorOf(scope)).stable.n).toBe(75);
    expect((await errorOf(other)).stable.n).toBe(75);
    expect((await errorOf(over)).stable.n).toBe(0);
  });

  it('goes on with the counts of a boot that another id of the router tells', async () => {
    const scope = await stand.rollout();
    await take(r1, 'boot-of-both', workerRow(scope.id, { fallbacks: 3 }));
    await take(r2, 'boot-of-both', workerRow(scope.id, { fallbacks: 4 }));
    expect((await stand.read(scope)).fallbacks).toBe(4);
  });

  it('never counts epochs of an earlier candidate', async () => {
    const scope = await stand.rollout({ shares: [0.1, 0.2] });
    await take(r1, 'boot', workerRow(scope.id), workerRow(scope.id, { epoch: 1 }));
    const restarted = { ...scope, epochs: scope.epochs.slice(1) };
    expect((await errorOf(restarted)).whole.candidate).toEqual({ n: 25, x: 2 });
  });

  it('joins buckets of all routers and judges users, not requests', async () => {
    const scope = await stand.rollout({ sticky: true, shares: [0.2, 0.6] });
    const judged = (seen: number[], hit: number[]) =>
      armOf({ error: { n: 50, x: hit.length, seen: bucketsText(seen), hit: bucketsText(hit) } });
    await take(
      r1,
      'boot',
      workerRow(scope.id, { epoch: 0, candidate: judged([1, 2], [1]), stable: judged([3_000, 9_000], [9_000]) }),
      workerRow(scope.id, { epoch: 1, candidate: judged([1, 2, 3_000], [1, 3_000]), stable: judged([9_000], [9_000]) }),
    );
    await take(
      r2,
      'boot-of-r2',
      workerRow(scope.id, { epoch: 1, candidate: judged([2, 5], [1]), stable: judged([], []) }),
    );
    // said again without the buckets: what was joined stays
    await take(r2, 'boot-of-r2', workerRow(scope.id, { epoch: 1, candidate: armOf({ error: { n: 51, x: 1 } }), stable: judged([], []) })); // biome-ignore format: one line
    const evidence = await stand.read(scope);
    expect(evidence).toMatchObject({ unit: 'bucket', candidateEvents: 2 });
    expect(evidence.metrics[0]).toEqual({
      metric: 'error',
      epochs: [
        { epoch: 0, share: 0.2, stableEvents: 1, candidateEvents: 1 },
        { epoch: 1, share: 0.6, stableEvents: 0, candidateEvents: 1 }, // 3,000 for the first time; 1 never again
        { epoch: 1, share: 0.5, stableEvents: 1, candidateEvents: 0 }, // 9,000 once more, w' = (0.6 − 0.2) / 0.8
      ],
      stable: { n: 1, x: 1 },
      candidate: { n: 4, x: 2 },
      whole: { stable: { n: 2, x: 1 }, candidate: { n: 4, x: 2 } },
    });
  });

  it('takes a thousand rows in one statement', async () => {
    const scopes = await Promise.all(Array.from({ length: 20 }, () => stand.rollout()));
    const rows = scopes.flatMap(({ id }) => Array.from({ length: 50 }, (_, worker) => workerRow(id, { worker })));
    const writes = async () =>
      Number(/perch_database_queries_total\{statement="with"\} (\d+)/.exec(await stand.shownMetrics())?.[1] ?? 0);
    const before = await writes();
    await take(r1, 'boot', ...rows);
    expect((await writes()) - before).toBeLessThanOrEqual(2); // the counts, and who is woken
    expect((await errorOf(scopes[19]!)).candidate).toEqual({ n: 1_250, x: 100 });
  });

  it('adds up pairs of a shadow before the candidate has any share', async () => {
    const scope = await stand.rollout({ shares: [0], state: 'shadowing' });
    const pairs = { pairs: 10, compared: 8, agree: 7, dropped: 2, discordant: { error: { stable: 0, candidate: 1 } } };
    await take(r1, 'boot', workerRow(scope.id, { pairs }), workerRow(scope.id, { worker: 2, pairs }));
    const evidence = await stand.read(scope);
    expect(evidence.pairs).toEqual({
      pairs: 20,
      compared: 16,
      agree: 14,
      dropped: 4,
      discordant: { error: { stable: 0, candidate: 2 } },
    });
    expect(evidence.metrics[0]!.epochs).toEqual([]);
  });
});
