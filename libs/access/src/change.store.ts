import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';

/** A change as an audit row and as an event, in one statement: most transactions of the control plane end with some. */
@Injectable()
export class ChangeStore {
  async insert(tx: Tx, row: { actor: string; action: string; subject: string; detail: string }): Promise<void> {
    await tx.query(
      `with audited as (insert into audit_log (actor, action, subject, detail) values ($1, $2, $3, $4::json))
       insert into outbox (type, subject, data) values ($2, $3, $4::json)`,
      [row.actor, row.action, row.subject, row.detail],
    );
  }
}
