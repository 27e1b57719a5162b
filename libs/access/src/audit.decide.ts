import { type AuditCheck, sha256Hex } from '@perch/contracts';

/** A row as it is stored: `detail` is the stored text, `at` is ISO 8601 in UTC with milliseconds. */
export interface ChainRow {
  id: number;
  at: string;
  actor: string;
  action: string;
  subject: string;
  detail: string;
  previousHash: string;
  hash: string;
}
export interface ChainHead {
  position: number;
  hash: string;
}

export const chainStart = '0'.repeat(64);

/** The same text that the database hashes when a row is committed: a JSON array as Postgres writes it. */
export function rowHash(row: Omit<ChainRow, 'hash'>): string {
  const parts = [row.previousHash, String(row.id), row.at, row.actor, row.action, row.subject, row.detail];
  return sha256Hex(`[${parts.map((part) => JSON.stringify(part)).join(', ')}]`);
}

/** Walks the chain row by row; rows come in order of their number. */
export class ChainWalk {
  private rows = 0;
  private hash = chainStart;
  private fault: AuditCheck['fault'] = null;

  /** False: a fault was found, there is no need to go on. */
  take(row: ChainRow): boolean {
    const expected = this.rows + 1;
    if (row.id !== expected) this.fault = { id: expected, reason: `row ${expected} is missing` };
    else if (row.previousHash !== this.hash)
      this.fault = { id: row.id, reason: `row ${row.id} does not follow the row before it` };
    else if (rowHash(row) !== row.hash)
      this.fault = { id: row.id, reason: `the content of row ${row.id} is not what was recorded` };
    else {
      this.rows = row.id;
      this.hash = row.hash;
    }
    return this.fault === null;
  }

  /** The verdict; `head` is what the ledger says its last row is. */
  end(head: ChainHead): AuditCheck {
    if (this.fault === null && this.rows !== head.position)
      this.fault = { id: this.rows + 1, reason: `the rows from ${this.rows + 1} to ${head.position} are missing` };
    if (this.fault === null && this.hash !== (head.position === 0 ? chainStart : head.hash))
      this.fault = { id: this.rows, reason: `the last row is not the one that was recorded last` };
    return { intact: this.fault === null, rows: this.rows, fault: this.fault };
  }
}
