import { Injectable } from '@nestjs/common';
import { Transactions } from '@perch/platform/database';

export interface KeptRequest {
  requestHash: string;
  state: 'running' | 'done';
  status: number | null;
  answer: unknown;
}

/** The only SQL for idempotency_keys. A running row is a lease: who crashed loses it. */
@Injectable()
export class IdempotencyStore {
  constructor(private readonly transactions: Transactions) {}

  /** True: this ticket holds the key now (it was free, over, or its holder is gone). */
  async claim(at: Place, requestHash: string, ticket: string, leaseMs: number): Promise<boolean> {
    const rows = await this.transactions.manager.query(
      `insert into idempotency_keys (actor, key, request_hash, ticket, state, expires_at)
       values ($1, $2, $3, $4, 'running', now() + $5 * interval '1 millisecond')
       on conflict (actor, key) do update set request_hash = excluded.request_hash, ticket = excluded.ticket,
         state = 'running', status = null, answer = null, expires_at = excluded.expires_at
       where idempotency_keys.expires_at <= now() returning key`,
      [at.actor, at.key, requestHash, ticket, leaseMs],
    );
    return rows.length === 1;
  }

  async find(at: Place): Promise<KeptRequest | null> {
    const [row] = await this.transactions.manager.query(
      `select request_hash as "requestHash", state, status, answer from idempotency_keys
       where actor = $1 and key = $2 and expires_at > now()`,
      [at.actor, at.key],
    );
    return row ?? null;
  }

  async renew(at: Place, ticket: string, leaseMs: number): Promise<void> {
    await this.transactions.manager.query(
      `update idempotency_keys set expires_at = now() + $4 * interval '1 millisecond'
       where actor = $1 and key = $2 and ticket = $3 and state = 'running'`,
      [at.actor, at.key, ticket, leaseMs],
    );
  }

  async finish(at: Place, ticket: string, status: number, answer: unknown, keepMs: number): Promise<void> {
    await this.transactions.manager.query(
      `update idempotency_keys set state = 'done', status = $4, answer = $5::json,
         expires_at = now() + $6 * interval '1 millisecond'
       where actor = $1 and key = $2 and ticket = $3`,
      [at.actor, at.key, ticket, status, JSON.stringify(answer ?? null), keepMs],
    );
  }

  async release(at: Place, ticket: string): Promise<void> {
    await this.transactions.manager.query(
      'delete from idempotency_keys where actor = $1 and key = $2 and ticket = $3',
      [at.actor, at.key, ticket],
    );
  }

  async sweep(): Promise<number> {
    const [, count] = await this.transactions.manager.query('delete from idempotency_keys where expires_at <= now()');
    return count;
  }
}

/** Keys of different callers never meet. */
export interface Place {
  actor: string;
  key: string;
}
