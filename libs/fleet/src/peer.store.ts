import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';

/** A server whose cache holds a blob, as far as its own report says. */
export interface PeerRow {
  hash: string;
  address: string;
  token_hash: string;
}

@Injectable()
export class PeerStore {
  /** Live neighbours that serve a model of the caller's own document with one of these files, and let others read their cache. */
  async holding(tx: Tx, caller: string, hashes: readonly string[]): Promise<PeerRow[]> {
    return tx.query(
      `select distinct h #>> '{}' as hash, s.observed ->> 'peer' as address, s.token_hash
       from document_entries e
       cross join lateral jsonb_path_query(e.value, '$.files[*].sha256') h
       join server_models m on m.triton_model = e.key and m.server_id <> $1 and m.state = 'ready'
       join servers s on s.id = m.server_id and s.presence = 'live' and s.observed ->> 'peer' is not null
       where e.document_id = 'server/' || $1 and e.section = 'models' and h #>> '{}' = any($2)`,
      [caller, hashes],
    );
  }
}
