import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';

export interface Claim {
  kind: string;
  key: string;
  ticket: string;
  attempts: number;
}

export const workChannel = 'perch_work';

/**
 * The leased work queue: one row a (kind, key). A row says only *that* a key wants a look, never what happened to it.
 * Times are the database's own, so clocks of control planes do not matter.
 */
@Injectable()
export class WorkStore {
  constructor(private readonly source: DataSource) {}

  /** Asks for a look at `key`, now or `afterMs` from now; within `tx` it becomes visible with the change that caused it. */
  async enqueue(tx: EntityManager | null, kind: string, key: string, afterMs = 0): Promise<void> {
    await (tx ?? this.source.manager).query(
      `insert into work (kind, key, next_at) values ($1, $2, now() + $3 * interval '1 millisecond')
       on conflict (kind, key) do update set
         again = work.again or work.ticket is not null,
         next_at = case when work.ticket is null then least(work.next_at, excluded.next_at) else work.next_at end`,
      [kind, key, afterMs],
    );
    if (afterMs === 0) await (tx ?? this.source.manager).query('select pg_notify($1, $2)', [workChannel, kind]);
  }

  /** Claims due rows: the lease moves `next_at` forward, so a crash is tried again by itself. One statement, one transaction. */
  async claim(kind: string, limit: number, leaseMs: number): Promise<Claim[]> {
    const [rows] = await this.source.query(
      `update work set ticket = $3, next_at = now() + $4 * interval '1 millisecond', again = false, attempts = attempts + 1
       where (kind, key) in (
         select kind, key from work where kind = $1 and next_at <= now() order by next_at limit $2 for update skip locked)
       returning kind, key, ticket, attempts`,
      [kind, limit, randomUUID(), leaseMs],
    );
    return rows;
  }

  /** Keeps the lease while the work goes on; false: somebody else holds it now. */
  async renew(claim: Claim, leaseMs: number): Promise<boolean> {
    const [, count] = await this.source.query(
      `update work set next_at = now() + $4 * interval '1 millisecond' where kind = $1 and key = $2 and ticket = $3`,
      [claim.kind, claim.key, claim.ticket, leaseMs],
    );
    return count === 1;
  }

  /** Done: gone, unless it was asked for again meanwhile. A worker that woke too late holds no ticket and changes nothing. */
  async finish(claim: Claim, againAfterMs: number | null): Promise<void> {
    const where = 'kind = $1 and key = $2 and ticket = $3';
    const keys = [claim.kind, claim.key, claim.ticket];
    if (againAfterMs === null) await this.source.query(`delete from work where ${where} and not again`, keys);
    await this.source.query(
      `update work set ticket = null, attempts = 0, last_error = null, again = false,
         next_at = case when again then now() else now() + $4 * interval '1 millisecond' end where ${where}`,
      [...keys, againAfterMs ?? 0],
    );
  }

  async fail(claim: Claim, message: string, retryAfterMs: number): Promise<void> {
    await this.source.query(
      `update work set ticket = null, last_error = left($4, 2000),
         next_at = case when again then now() else now() + $5 * interval '1 millisecond' end, again = false
       where kind = $1 and key = $2 and ticket = $3`,
      [claim.kind, claim.key, claim.ticket, message, retryAfterMs],
    );
  }

  /** Milliseconds until the next row of these kinds is due; null: none. */
  async nextDueMs(kinds: readonly string[]): Promise<number | null> {
    const [row] = await this.source.query(
      `select extract(epoch from min(next_at) - now()) * 1000 as ms from work where kind = any($1)`,
      [kinds],
    );
    return row?.ms === null || row?.ms === undefined ? null : Math.max(0, Number(row.ms));
  }
}
