import { Injectable } from '@nestjs/common';
import type { AuditRow } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { ChainHead, ChainRow } from './audit.decide.ts';

const columns = `id::int, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, actor, action, subject,
  previous_hash as "previousHash", hash`;

/** The only SQL for audit_log. Its trigger numbers and hashes rows when their transaction commits. */
@Injectable()
export class AuditStore {
  async insert(tx: Tx, row: { actor: string; action: string; subject: string; detail: string }): Promise<void> {
    await tx.query('insert into audit_log (actor, action, subject, detail) values ($1, $2, $3, $4::json)', [
      row.actor,
      row.action,
      row.subject,
      row.detail,
    ]);
  }

  /** Newest first, below `before` when given. */
  list(tx: Tx, filter: { subject?: string; before?: number; limit: number }): Promise<AuditRow[]> {
    return tx.query(
      `select ${columns}, detail from audit_log
       where id < coalesce($1, 9223372036854775807) and ($2::text is null or subject = $2) order by id desc limit $3`,
      [filter.before ?? null, filter.subject ?? null, filter.limit],
    );
  }

  /** The newest `limit` above `after` and younger than `since`, oldest first. */
  ofSubject(
    tx: Tx,
    filter: { subject: string; after: number; since?: string | undefined; limit: number },
  ): Promise<AuditRow[]> {
    return tx.query(
      `select * from (
         select ${columns}, detail from audit_log
         where subject = $1 and id > $2 and ($3::timestamptz is null or at > $3) order by id desc limit $4) newest order by id`,
      [filter.subject, filter.after, filter.since ?? null, filter.limit],
    );
  }

  async head(tx: Tx): Promise<ChainHead> {
    const [head] = await tx.query(`select position::int, hash from ledger_heads where ledger = 'audit'`);
    return head;
  }

  /** Oldest first, above `after`, for checking the chain. */
  chain(tx: Tx, after: number, upTo: number, limit: number): Promise<ChainRow[]> {
    return tx.query(
      `select ${columns}, detail::text as detail from audit_log where id > $1 and id <= $2 order by id limit $3`,
      [after, upTo, limit],
    );
  }
}
