import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';

export interface Census {
  /** Deployments that are not retired, by state. */
  deployments: Record<string, number>;
  /** Endpoints that are there, by phase. */
  endpoints: Record<string, number>;
}

/** How many there are of what, in one grouped query. */
@Injectable()
export class CensusStore {
  async count(tx: Tx): Promise<Census> {
    const rows: { kind: keyof Census; word: string; count: number }[] = await tx.query(
      `select 'deployments' as kind, state as word, count(*)::int from deployments where state <> 'retired' group by state
       union all select 'endpoints', status ->> 'phase', count(*)::int from endpoints where spec is not null group by 2`,
    );
    const census: Census = { deployments: {}, endpoints: {} };
    for (const { kind, word, count } of rows) census[kind][word] = count;
    return census;
  }
}
