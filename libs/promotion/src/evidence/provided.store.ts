import { Injectable } from '@nestjs/common';
import type { ProvidedMetric } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { ProvidedBody, ProvidedSight } from './provided.decide.ts';

/** A rollout that goes on and asks a Prometheus. */
export interface ProvidedRollout {
  id: string;
  endpoint: string;
  epoch: number;
  versions: { stable: number; candidate: number };
  provided: ProvidedMetric[];
  bodies: Record<string, ProvidedBody>;
  /** The database's clock. */
  nowMs: number;
}

/** The only SQL for figures that users' Prometheus servers yield. */
@Injectable()
export class ProvidedStore {
  /** Endpoints with such a rollout that judges somebody now. */
  async endpoints(tx: Tx): Promise<string[]> {
    const rows: { endpoint: string }[] = await tx.query(
      `select endpoint from rollouts where ended_at is null and state in ('shifting', 'baking')
         and jsonb_array_length(coalesce(policy -> 'provided', '[]')) > 0 order by endpoint`,
    );
    return rows.map(({ endpoint }) => endpoint);
  }

  async rollout(tx: Tx, endpoint: string): Promise<ProvidedRollout | undefined> {
    const [row] = await tx.query(
      `select r.id, r.endpoint, r.epoch, extract(epoch from now()) * 1000 as "nowMs", r.policy -> 'provided' as provided, jsonb_build_object('stable', r.stable -> 'version',
         'candidate', r.candidate -> 'version') as versions,
         coalesce((select jsonb_object_agg(p.metric, p.body) from provided_counts p where p.rollout_id = r.id), '{}') as bodies
       from rollouts r where r.endpoint = $1 and r.ended_at is null and r.state in ('shifting', 'baking')`,
      [endpoint],
    );
    return row && { ...row, nowMs: Number(row.nowMs) };
  }

  async save(tx: Tx, rollout: string, metric: string, body: ProvidedBody): Promise<void> {
    await tx.query(
      `insert into provided_counts (rollout_id, metric, body, read_at, fault) values ($1, $2, $3, now(), null)
       on conflict (rollout_id, metric) do update set body = excluded.body, read_at = now(), fault = null`,
      [rollout, metric, JSON.stringify(body)],
    );
  }

  async saveFault(tx: Tx, rollout: string, metric: string, empty: ProvidedBody, fault: string): Promise<void> {
    await tx.query(
      `insert into provided_counts (rollout_id, metric, body, fault) values ($1, $2, $3, $4)
       on conflict (rollout_id, metric) do update set fault = excluded.fault`,
      [rollout, metric, JSON.stringify(empty), fault],
    );
  }

  async sights(tx: Tx, rollout: string): Promise<ProvidedSight[]> {
    const rows = await tx.query(
      `select metric, body, fault, extract(epoch from clock_timestamp() - read_at) * 1000 as age
       from provided_counts where rollout_id = $1`,
      [rollout],
    );
    // biome-ignore lint/suspicious/noExplicitAny: rows of the query above
    return rows.map(({ age, ...row }: any) => ({ ...row, ageMs: age === null ? null : Number(age) }));
  }
}
