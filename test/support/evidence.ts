import { randomUUID } from 'node:crypto';
import { Global, Module, type Provider } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  type ArmEvidence,
  type MetricEvidence,
  type RolloutPolicyInput,
  rolloutPolicy,
  type WorkerEvidence,
} from '@perch/contracts';
import { LOGGER, Metrics, silentLogger } from '@perch/platform';
import { DatabaseModule, Transactions } from '@perch/platform/database';
import type { EvidenceScope } from '@perch/promotion';
import { BaselineService } from '../../libs/promotion/src/evidence/baseline.service.ts';
import { CountStore } from '../../libs/promotion/src/evidence/count.store.ts';
import { EvidenceService } from '../../libs/promotion/src/evidence/evidence.service.ts';
import { EvidenceStore } from '../../libs/promotion/src/evidence/evidence.store.ts';
import { FeedbackService } from '../../libs/promotion/src/evidence/feedback.service.ts';
import { FeedbackStore } from '../../libs/promotion/src/evidence/feedback.store.ts';
import { HistoryReconcile } from '../../libs/promotion/src/evidence/history.reconcile.ts';
import { PrometheusClient } from '../../libs/promotion/src/evidence/prometheus.client.ts';
import { ProvidedReconcile } from '../../libs/promotion/src/evidence/provided.reconcile.ts';
import { ProvidedStore } from '../../libs/promotion/src/evidence/provided.store.ts';
import { TrafficHistoryStore } from '../../libs/promotion/src/evidence/traffic-history.store.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

const parts: Provider[] = [
  BaselineService, CountStore, EvidenceService, EvidenceStore, FeedbackService, FeedbackStore, HistoryReconcile,
  PrometheusClient, ProvidedReconcile, ProvidedStore, TrafficHistoryStore,
]; // biome-ignore format: one list

/** All that evidence is kept and judged by, on a real Postgres, without the rollouts that make use of it. */
export class EvidenceStand {
  readonly metrics = new Metrics();
  private constructor(
    readonly database: TestDatabase,
    private readonly closing: () => Promise<void>,
    // biome-ignore lint/suspicious/noExplicitAny: any class of the stand
    readonly get: <T>(token: abstract new (...args: any[]) => T) => T,
    readonly shownMetrics: () => Promise<string>,
  ) {}

  static async start(): Promise<EvidenceStand> {
    const database = await createTestDatabase();
    const metrics = new Metrics();
    const outside = [
      { provide: LOGGER, useValue: silentLogger },
      { provide: Metrics, useValue: metrics },
    ];
    @Global()
    @Module({ providers: outside, exports: outside })
    class OutsideModule {}
    const module = await Test.createTestingModule({
      imports: [OutsideModule, DatabaseModule.forRoot(database)],
      providers: parts,
    }).compile();
    return new EvidenceStand(
      database,
      async () => {
        await module.close();
        await database.drop();
      },
      (token) => module.get(token, { strict: false }),
      async () => (await metrics.render()).body,
    );
  }

  close(): Promise<void> {
    return this.closing();
  }

  read(scope: EvidenceScope) {
    return this.get(Transactions).run((tx) => this.get(EvidenceService).read(tx, scope));
  }

  async woken(): Promise<string[]> {
    const rows = await this.database.query(`delete from work where kind = 'rollout' returning key`);
    return rows.map(({ key }) => key as string).sort();
  }

  /** A rollout in the middle of its way, as its machine would store it. */
  async rollout(wish: RolloutWish = {}): Promise<EvidenceScope & { endpoint: string }> {
    const { endpoint = `text/${randomUUID().slice(0, 8)}`, shares = [0.25], sticky = false, state = 'shifting' } = wish;
    const id = randomUUID();
    const policy = rolloutPolicy.parse(wish.policy ?? {});
    const epochs = shares.map((share, epoch) => ({ epoch, share, since: new Date(Date.now() - 60_000) }));
    const over = ['promoted', 'rolled_back', 'aborted'].includes(state);
    const arm = (version: number) => JSON.stringify({ deployment: `d${version}`, version, digest: `g${version}` });
    await this.database.query(
      `insert into rollouts (id, endpoint, state, run, reason, stable, candidate, policy, sticky_header, salt, epoch, share,
         epochs, by_hand, allow_breaking, started_at, started_by, step_at, verifying_since, patience_since, ended_at, ended_as)
       values ($1, $2, $3, 'running', '', $4, $5, $6, $7, 's', $8, $9, $10, false, false, now(), 'olga', now(), now(), now(),
         case when $11 then now() end, case when $11 then 'person' end)`,
      [
        id,
        endpoint,
        state,
        arm(1),
        arm(2),
        JSON.stringify(policy),
        sticky ? 'x-user' : null,
        epochs.length - 1,
        shares.at(-1),
        JSON.stringify(epochs),
        over,
      ],
    );
    const baseline = { r0: {}, slowMs: 100, requestsPerMinute: 0 };
    return { id, endpoint, epochs, policy, stickyHeader: sticky ? 'x-user' : null, baseline };
  }
}

export interface RolloutWish {
  endpoint?: string;
  shares?: number[];
  sticky?: boolean;
  state?: string;
  policy?: RolloutPolicyInput;
}

/** Counts of one metric that are the same ended and closed. */
export const armOf = (metrics: Record<string, MetricEvidence>): ArmEvidence => ({ ended: metrics, closed: metrics });

export const workerRow = (rollout: string, change: Partial<WorkerEvidence> = {}): WorkerEvidence => ({
  rollout,
  epoch: 0,
  worker: 1,
  stable: armOf({ error: { n: 75, x: 1 } }),
  candidate: armOf({ error: { n: 25, x: 2 } }),
  fallbacks: 0,
  keyless: 0,
  ...change,
});

/** Buckets as they stand in a report. */
export function bucketsText(buckets: readonly number[]): string {
  const bytes = Buffer.alloc(1_250);
  for (const bucket of buckets) bytes[bucket >> 3]! |= 1 << (bucket & 7);
  return bytes.toString('base64');
}
