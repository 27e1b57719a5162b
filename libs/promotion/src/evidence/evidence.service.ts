import { Inject, Injectable } from '@nestjs/common';
import { AppError, type WorkerEvidence } from '@perch/contracts';
import { rolloutWork } from '@perch/endpoints';
import { type CounterMetric, LOGGER, type Logger, Metrics } from '@perch/platform';
import { Transactions, type Tx, WorkStore } from '@perch/platform/database';
import type { KnownRollout } from './count.store.ts';
import type { EvidenceScope, RolloutEvidence } from './evidence.entity.ts';
import { EvidenceStore } from './evidence.store.ts';
import { cohortMs, delayedFlags } from './feedback.decide.ts';
import { feedbackMetric } from './feedback.plan.ts';
import { nothingRead, providedMetric } from './provided.decide.ts';
import { readEvidence } from './read.plan.ts';
import { type CountRow, isRolloutId, planReport, type ReportPlan, rowKey } from './report.decide.ts';

const mostTurns = 5;
/** Nothing of a report without news for the rollback rule is so urgent that each router may ask for a pass of its own. */
const calmMs = 500;

type MarkedPlan = ReportPlan & { marks: { rollout: string; epoch: number; gapMs: number }[] };

/** What routers counted of rollouts: taken idempotently, read as what decisions look at. */
@Injectable()
export class EvidenceService {
  private readonly refusals: CounterMetric<'reason'>;
  private readonly taken: CounterMetric<never>;
  private readonly said = new Set<string>();

  constructor(
    private readonly transactions: Transactions,
    private readonly store: EvidenceStore,
    private readonly work: WorkStore,
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.taken = metrics.counter('perch_evidence_rows_total', 'Rows of evidence taken from routers.', []);
    this.refusals = metrics.counter(
      'perch_evidence_refused_total',
      'Rows of evidence left out: unknown or finished rollout, an epoch to come, counts that went backwards, malformed.',
      ['reason'],
    );
  }

  /** Never throws for what a row says: rows that cannot be taken are counted, logged and left out. Throws when the database is away. */
  async take(router: string, bootId: string, evidence: readonly WorkerEvidence[]): Promise<void> {
    if (evidence.length === 0) return;
    for (let turn = 1; turn <= mostTurns; turn += 1) {
      const plan = await this.plan(bootId, evidence);
      if (turn === 1) this.tell(router, plan);
      if (await this.save(router, bootId, plan)) {
        this.taken.add({}, plan.rows.length);
        return;
      }
    }
    throw new AppError(
      'unavailable',
      `evidence of router ${router} is written by others at the same time; send it again`,
    );
  }

  private async plan(bootId: string, evidence: readonly WorkerEvidence[]): Promise<MarkedPlan> {
    const ids = [...new Set(evidence.map(({ rollout }) => rollout))].filter(isRolloutId);
    const tx = this.transactions.manager;
    const rollouts = ids.length === 0 ? [] : await this.store.counts.rollouts(tx, ids);
    const known = new Map(rollouts.map((rollout) => [rollout.id, rollout]));
    const keys = evidence
      .filter((row) => row.worker < 2 ** 31 && row.epoch <= (known.get(row.rollout)?.epoch ?? -1))
      .map(({ rollout, epoch, worker }) => ({ rollout, epoch, worker }));
    const stored = keys.length === 0 ? [] : await this.store.counts.stored(tx, bootId, keys);
    const plan = planReport(evidence, known, new Map(stored.map((row) => [rowKey(row), row])));
    return { ...plan, marks: marksOf(plan.rows, known) };
  }

  /** False: somebody else wrote one of the rows meanwhile, and nothing was kept of this. */
  private async save(router: string, bootId: string, { rows, sets, wake, marks }: MarkedPlan): Promise<boolean> {
    if (rows.length === 0) return true;
    try {
      await this.transactions.run(async (tx) => {
        if ((await this.store.counts.save(tx, router, bootId, rows, sets)) < rows.length) throw lost;
        if (marks.length > 0) await this.store.feedback.mark(tx, marks);
        const names = (urgent: boolean) => [...wake].filter(([, at]) => at === urgent).map(([endpoint]) => endpoint);
        await this.work.enqueueAll(tx, rolloutWork, names(true));
        await this.work.enqueueAll(tx, rolloutWork, names(false), calmMs);
      });
      return true;
    } catch (error) {
      if (error === lost) return false;
      throw error;
    }
  }

  /** Each fault once a row: a router that goes on saying it would fill the log. */
  private tell(router: string, { refused }: ReportPlan): void {
    for (const { reason, ...row } of refused) {
      this.refusals.add({ reason });
      const key = `${router} ${rowKey(row)} ${reason}`;
      if (this.said.has(key)) continue;
      if (this.said.size >= 10_000) this.said.clear();
      this.said.add(key);
      const level = reason === 'finished_rollout' ? 'debug' : 'warn'; // a router hears of the end a moment later
      this.logger[level]('evidence left out', { router, reason, ...row, rollout: row.rollout.slice(0, 64) });
    }
  }

  /** All that is known of a rollout, merged. */
  async read(tx: Tx, scope: EvidenceScope): Promise<RolloutEvidence> {
    const { id, endpoint, epochs, policy, stickyHeader } = scope;
    const { counts, feedback, provided, history } = this.store;
    const numbers = epochs.map(({ epoch }) => epoch);
    const sticky = stickyHeader !== null;
    const judged = await feedback.judged(tx, id, policy.flags);
    const sights = policy.provided.length === 0 ? [] : await provided.sights(tx, id);
    const unread = { body: nothingRead, ageMs: null, fault: null };
    return readEvidence(scope, {
      ...(await counts.counted(tx, id, numbers)),
      recent: await history.recent(tx, endpoint),
      sets: sticky ? await counts.sets(tx, id, numbers) : [],
      feedback: delayedFlags(policy.flags).map(({ name }) =>
        feedbackMetric(name, judged, epochs, { sticky, a: policy.promotionAlpha }),
      ),
      provided: policy.provided.map(({ name }) =>
        providedMetric(sights.find(({ metric }) => metric === name) ?? { metric: name, ...unread }, epochs, sticky),
      ),
    });
  }
}

/** Epochs whose replies are told apart by time, because feedback on them comes later. */
function marksOf(rows: readonly CountRow[], rollouts: ReadonlyMap<string, KnownRollout>) {
  const epochs = new Map(rows.map(({ rollout, epoch }) => [`${rollout} ${epoch}`, { rollout, epoch }]));
  return [...epochs.values()].flatMap(({ rollout, epoch }) => {
    const windows = delayedFlags(rollouts.get(rollout)?.flags ?? []).map(({ feedbackWithinMs }) => feedbackWithinMs);
    return windows.length === 0 ? [] : [{ rollout, epoch, gapMs: cohortMs(Math.min(...windows)) }];
  });
}

const lost = new Error('written by somebody else meanwhile');
