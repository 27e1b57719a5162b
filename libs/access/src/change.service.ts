import { Injectable } from '@nestjs/common';
import type { Actor } from '@perch/contracts';
import type { ChangeLog, Tx } from '@perch/platform/database';
import { actorText } from './audit.service.ts';
import { ChangeStore } from './change.store.ts';

/** Each change becomes an audit row and an event, in the transaction of the change. */
@Injectable()
export class ChangeService implements ChangeLog {
  constructor(private readonly ledgers: ChangeStore) {}

  async record(tx: Tx, actor: Actor, action: string, subject: string, detail: Record<string, unknown>): Promise<void> {
    await this.ledgers.insert(tx, { actor: actorText(actor), action, subject, detail: JSON.stringify(detail) });
  }
}
