import { Injectable } from '@nestjs/common';
import type { Actor, AuditCheck, AuditRow } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { ChainWalk } from './audit.decide.ts';
import { AuditStore } from './audit.store.ts';

/** How an actor stands in rows: the name for people, the id because names are not unique. */
export const actorText = (actor: Actor): string => (actor.id === actor.name ? actor.id : `${actor.name} (${actor.id})`);

@Injectable()
export class AuditService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: AuditStore,
  ) {}

  /** In the transaction of the change: both happen or neither. `detail` never holds a secret or a body. */
  async record(tx: Tx, actor: Actor, action: string, subject: string, detail: Record<string, unknown>): Promise<void> {
    await this.store.insert(tx, { actor: actorText(actor), action, subject, detail: JSON.stringify(detail) });
  }

  /** Newest first. */
  list(filter: { subject?: string; before?: number; limit: number }): Promise<AuditRow[]> {
    return this.store.list(this.transactions.manager, filter);
  }

  /** What was done to one thing, oldest first: the newest `limit` rows above `after` that are younger than `since`. */
  ofSubject(filter: {
    subject: string;
    after: number;
    since?: string | undefined;
    limit: number;
  }): Promise<AuditRow[]> {
    return this.store.ofSubject(this.transactions.manager, filter);
  }

  /** Recomputes every hash. Rows that are committed meanwhile are left for the next time. */
  async verify(batch = 1_000): Promise<AuditCheck> {
    const tx = this.transactions.manager;
    const head = await this.store.head(tx);
    const walk = new ChainWalk();
    for (let after = 0; ; ) {
      const rows = await this.store.chain(tx, after, head.position, batch);
      if (!rows.every((row) => walk.take(row)) || rows.length < batch) return walk.end(head);
      after = rows.at(-1)!.id;
    }
  }
}
