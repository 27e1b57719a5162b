import { Injectable } from '@nestjs/common';
import type { ChangeEvent } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';

/** Notified with the number of each new event when it is committed. */
export const eventChannel = 'perch_events';

/**
 * Events that people and programs may follow (`GET /api/v1/events`). Numbers are given at commit, so they go up in the
 * order in which changes became visible: whoever saw n asks for what is above n and misses nothing.
 */
@Injectable()
export class OutboxService {
  constructor(private readonly transactions: Transactions) {}

  async emit(tx: Tx, type: string, subject: string, data: Record<string, unknown>): Promise<void> {
    await tx.query('insert into outbox (type, subject, data) values ($1, $2, $3::json)', [
      type,
      subject,
      JSON.stringify(data),
    ]);
  }

  /** Oldest first, above `after`. */
  since(after: number, limit: number): Promise<ChangeEvent[]> {
    return this.transactions.manager.query(
      `select id::int, type, subject, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, data
       from outbox where id > $1 order by id limit $2`,
      [after, limit],
    );
  }

  /** Number of the newest event; 0 before there was one. */
  async latest(): Promise<number> {
    const [head] = await this.transactions.manager.query(
      `select position::int from ledger_heads where ledger = 'outbox'`,
    );
    return head.position;
  }

  /** Number of the oldest event still kept; events below it cannot be followed any more. */
  async oldest(): Promise<number | null> {
    const [row] = await this.transactions.manager.query('select min(id)::int as id from outbox');
    return row.id;
  }

  /** Forgets events that are older; returns how many. */
  async sweep(olderThanMs: number): Promise<number> {
    const [, count] = await this.transactions.manager.query(
      `delete from outbox where at < now() - $1 * interval '1 millisecond'`,
      [olderThanMs],
    );
    return count;
  }
}
