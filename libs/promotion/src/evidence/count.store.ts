import { Injectable } from '@nestjs/common';
import type { FlagMetric } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { BucketSet } from '../statistics/buckets.decide.ts';
import { hexOf } from './bucket-set.decide.ts';
import type { CountedRow, CountedSet } from './merge.plan.ts';
import type { CountRow, ReportedRollout, SetRow } from './report.decide.ts';

/** A rollout that a router reported about. */
export interface KnownRollout extends ReportedRollout {
  flags: FlagMetric[];
}

/** SQL of a set that came as hexadecimal digits; zeros fill up the rest. */
export const bitsOf = (column: string): string => `('x' || ${column})::bit(10000)`;
/** SQL of the bytes of a set: what Postgres would send, without the length in front. */
export const bytesOf = (column: string): string => `substring(bit_send(${column}) from 5)`;
export const setOfBytes = (bytes: Buffer): BucketSet => new Uint8Array(bytes);

/** The only SQL for what routers counted of rollouts. */
@Injectable()
export class CountStore {
  async rollouts(tx: Tx, ids: readonly string[]): Promise<KnownRollout[]> {
    return tx.query(
      `select id, endpoint, epoch, ended_at is not null as over, sticky_header is not null as sticky,
         coalesce(policy -> 'flags', '[]') as flags from rollouts where id = any($1::uuid[])`,
      [ids],
    );
  }

  /** What is stored of this boot of a router for these rows, under whatever id it told them. */
  async stored(tx: Tx, bootId: string, keys: readonly Omit<CountRow, 'counts' | 'turn'>[]) {
    const rows: CountRow[] = await tx.query(
      `select c.rollout_id as rollout, c.epoch, c.worker, c.counts, c.turn
       from jsonb_to_recordset($2) as k(rollout uuid, epoch integer, worker integer)
       join arm_counts c on c.rollout_id = k.rollout and c.epoch = k.epoch and c.worker = k.worker
         and c.boot_id = $1`,
      [bootId, JSON.stringify(keys)],
    );
    return rows;
  }

  /**
   * Writes rows and joins sets, one statement however many. A row that somebody else wrote meanwhile is left as it is;
   * the answer says how many were written.
   */
  async save(tx: Tx, router: string, bootId: string, rows: readonly CountRow[], sets: readonly SetRow[]) {
    const [{ written }] = await tx.query(
      `with counted as (
         insert into arm_counts (rollout_id, epoch, router_id, boot_id, worker, counts, turn)
         select r.rollout, r.epoch, $1, $2, r.worker, r.counts, r.turn
         from jsonb_to_recordset($3) as r(rollout uuid, epoch integer, worker integer, counts jsonb, turn integer)
         order by r.rollout, r.epoch, r.worker
         on conflict (rollout_id, epoch, boot_id, worker) do update
           set router_id = excluded.router_id, counts = excluded.counts, turn = excluded.turn, at = now() where arm_counts.turn = excluded.turn - 1
         returning 1),
       joined as (
         insert into arm_buckets (rollout_id, epoch, arm, phase, metric, seen, hit)
         select s.rollout, s.epoch, s.arm, s.phase, s.metric, ${bitsOf('s.seen')}, ${bitsOf('s.hit')}
         from jsonb_to_recordset($4) as s(rollout uuid, epoch integer, arm text, phase text, metric text, seen text, hit text)
         order by s.rollout, s.epoch, s.arm, s.phase, s.metric
         on conflict (rollout_id, epoch, arm, phase, metric) do update
           set seen = arm_buckets.seen | excluded.seen, hit = arm_buckets.hit | excluded.hit
           where (arm_buckets.seen | excluded.seen) <> arm_buckets.seen or (arm_buckets.hit | excluded.hit) <> arm_buckets.hit
         returning 1)
       select (select count(*) from counted)::integer as written, (select count(*) from joined) as joined`,
      [
        router,
        bootId,
        JSON.stringify(rows),
        JSON.stringify(sets.map((set) => ({ ...set, seen: hexOf(set.seen), hit: hexOf(set.hit) }))),
      ],
    );
    return written as number;
  }

  /** All rows of these epochs, the time of the newest, and the database's clock. */
  async counted(tx: Tx, rollout: string, epochs: readonly number[]) {
    const rows: CountedRow[] = await tx.query(
      'select epoch, counts from arm_counts where rollout_id = $1 and epoch = any($2::integer[])',
      [rollout, epochs],
    );
    const [clock]: [{ now: Date; at: Date | null }] = await tx.query(
      `select clock_timestamp() as now, (select max(at) from arm_counts where rollout_id = $1 and epoch = any($2::integer[])) as at`,
      [rollout, epochs],
    );
    return { rows, ...clock };
  }

  async sets(tx: Tx, rollout: string, epochs: readonly number[]): Promise<CountedSet[]> {
    const rows = await tx.query(
      `select epoch, arm, phase, metric, ${bytesOf('seen')} as seen, ${bytesOf('hit')} as hit
       from arm_buckets where rollout_id = $1 and epoch = any($2::integer[])`,
      [rollout, epochs],
    );
    // biome-ignore lint/suspicious/noExplicitAny: rows of the query above
    return rows.map((row: any) => ({ ...row, seen: setOfBytes(row.seen), hit: setOfBytes(row.hit) }));
  }
}
