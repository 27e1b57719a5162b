import { Injectable } from '@nestjs/common';
import type { Actor } from '@perch/contracts';
import type { ChangeLog, Tx } from '@perch/platform/database';
import { AuditService } from './audit.service.ts';
import { OutboxService } from './outbox.service.ts';

/** Each change becomes an audit row and an event, in the transaction of the change. */
@Injectable()
export class ChangeService implements ChangeLog {
  constructor(
    private readonly audit: AuditService,
    private readonly outbox: OutboxService,
  ) {}

  async record(tx: Tx, actor: Actor, action: string, subject: string, detail: Record<string, unknown>): Promise<void> {
    await this.audit.record(tx, actor, action, subject, detail);
    await this.outbox.emit(tx, action, subject, detail);
  }
}
