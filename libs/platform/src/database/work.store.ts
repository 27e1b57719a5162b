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
    await this.enqueueAll(tx, kind, [key], afterMs);
  }

  /**
   * The same for many keys in one statement. Rows are taken in the order of their keys, so that no two callers wait for
   * each other. Whoever waits is notified once, and not at all of what is not due yet.
   */
  async enqueueAll(tx: EntityManager | null, kind: string, keys: readonly string[], afterMs = 0): Promise<void> {
    if (keys.length === 0) return;
    const notify = afterMs === 0 ? `select pg_notify('${workChannel}', $1)` : 'select 1';
    await (tx ?? this.source.manager).query(
      `with asked as (
         insert into work (kind, key, next_at)
         select $1, key, now() + $3 * interval '1 millisecond' from unnest($2::text[]) as key order by key
         on conflict (kind, key) do update set
           again = work.again or work.ticket is not null,
           next_at = case when work.ticket is null then least(work.next_at, excluded.next_at) else work.next_at end)
       ${notify}`,
      [kind, [...new Set(keys)], afterMs],
    );
  }

  /** Claims due rows: the lease moves `next_at` forward, so a crash is tried again by itself. One statement, one transaction. */
  async claim(kind: string, limit: number, leaseMs: number): Promise<Claim[]> {
    const [rows] = await this.source.query(
      // Materialized: a plan that looks the subquery up again for each row would take more than the limit says.
      `with due as materialized (
         select kind, key from work where kind = $1 and next_at <= now() order by next_at limit $2 for update skip locked)
       update work w set ticket = $3, next_at = now() + $4 * interval '1 millisecond', again = false, attempts = attempts + 1
       from due where w.kind = due.kind and w.key = due.key
       returning w.kind, w.key, w.ticket, w.attempts`,
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

  /**
   * Done: gone, unless it was asked for again meanwhile. A worker that woke too late holds no ticket and changes nothing.
   * Answers when the key is due next, in ms; null: when somebody asks.
   */
  async finish(claim: Claim, againAfterMs: number | null): Promise<number | null> {
    const where = 'kind = $1 and key = $2 and ticket = $3';
    const keys = [claim.kind, claim.key, claim.ticket];
    if (againAfterMs === null) {
      const [, gone] = await this.source.query(`delete from work where ${where} and not again`, keys);
      if (gone === 1) return null;
    }
    const [rows] = await this.source.query(
      `update work w set ticket = null, attempts = 0, last_error = null, again = false,
         next_at = case when w.again then now() else now() + $4 * interval '1 millisecond' end
       from (select again from work where ${where} for update) old where w.${where.replaceAll(' and ', ' and w.')}
       returning old.again`,
      [...keys, againAfterMs ?? 0],
    );
    return rows.length === 0 ? null : rows[0].again ? 0 : againAfterMs;
  }

  /** Given back untouched: somebody else may have them at once. */
  async release(claims: readonly Claim[]): Promise<void> {
    if (claims.length === 0) return;
    await this.source.query(
      `update work set ticket = null, next_at = now(), attempts = attempts - 1
       where (kind, key, ticket) in (select * from unnest($1::text[], $2::text[], $3::uuid[]))`,
      [claims.map(({ kind }) => kind), claims.map(({ key }) => key), claims.map(({ ticket }) => ticket)],
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

  /** For each kind that has work: milliseconds until the first of it is due; 0: it is. */
  async due(kinds: readonly string[]): Promise<Map<string, number>> {
    const rows: { kind: string; ms: string | null }[] = await this.source.query(
      `select kind, extract(epoch from (select min(next_at) from work w where w.kind = k.kind) - now()) * 1000 as ms
       from unnest($1::text[]) as k(kind)`,
      [kinds],
    );
    return new Map(rows.flatMap(({ kind, ms }) => (ms === null ? [] : [[kind, Math.max(0, Number(ms))] as const])));
  }

  /** Keys that are worked on or due, by kind, at most `most` of each. */
  async depths(kinds: readonly string[], most: number): Promise<Map<string, number>> {
    const rows: { kind: string; depth: number }[] = await this.source.query(
      `select kind, (select count(*)::int from (select 1 from work w where w.kind = k.kind
         and (w.next_at <= now() or w.ticket is not null) limit $2) found) as depth from unnest($1::text[]) as k(kind)`,
      [kinds, most],
    );
    return new Map(rows.map(({ kind, depth }) => [kind, depth]));
  }
}
