import { Injectable } from '@nestjs/common';
import type { QuarantineEntry } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';

export type NewQuarantine = Omit<QuarantineEntry, 'since'>;

/** What a pass has to know to leave a refused deployment alone without resolving its version again. */
export interface Refused {
  digest: string;
  sourceDigest: string;
  version: number;
  reason: string;
}

/** The only SQL for deployments that a rollout refused. */
@Injectable()
export class QuarantineStore {
  /** What is refused already keeps its first reason. True: it is new. */
  async insert(tx: Tx, entry: NewQuarantine): Promise<boolean> {
    const rows: unknown[] = await tx.query(
      `insert into quarantine (endpoint, digest, source_digest, version, reason, rollout)
       values ($1, $2, coalesce((select source_digest from deployments where endpoint = $1 and digest = $2
         order by created_at desc limit 1), ''), $3, $4, $5)
       on conflict (endpoint, digest) do nothing returning digest`,
      [entry.endpoint, entry.digest, entry.version, entry.reason, entry.rollout],
    );
    return rows.length > 0;
  }

  async refusals(tx: Tx, endpoint: string): Promise<Refused[]> {
    return tx.query(
      `select digest, source_digest as "sourceDigest", version, reason from quarantine where endpoint = $1
       order by version desc, digest`,
      [endpoint],
    );
  }

  /** Newest first; `endpoint` null: of all endpoints. */
  async list(tx: Tx, endpoint: string | null): Promise<QuarantineEntry[]> {
    const rows: (Omit<QuarantineEntry, 'since'> & { since: Date })[] = await tx.query(
      `select endpoint, digest, version, reason, rollout, since from quarantine where $1::text is null or endpoint = $1
       order by since desc, endpoint, digest`,
      [endpoint],
    );
    return rows.map((row) => ({ ...row, since: row.since.toISOString() }));
  }

  /** False: it was not there. */
  async release(tx: Tx, endpoint: string, digest: string): Promise<boolean> {
    const [, count] = await tx.query('delete from quarantine where endpoint = $1 and digest = $2', [endpoint, digest]);
    return count > 0;
  }
}
