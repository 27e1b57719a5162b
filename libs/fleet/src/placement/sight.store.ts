import { Injectable } from '@nestjs/common';
import type { ObservedModel, ObservedServer } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { Presence } from '../server.store.ts';
import type { PlacementState } from './placement-row.ts';

/** A server as far as it explains what becomes of a model on it. */
export interface ServerSight {
  id: string;
  name: string;
  pool: string;
  presence: Presence;
  lastSeenAt: string;
  /** Revision of the document it is told to follow; null: none was published yet. */
  toldRevision: number | null;
  /** By whom it was taken out of service; null: it is in service. */
  drainedBy: string | null;
  /** What it reported last, models left out; null: nothing yet. */
  observed: Omit<ObservedServer, 'models'> | null;
}

/** One deployment on one server, with all that is known of it. Times are ISO texts. */
export interface PlacementSight {
  deployment: string;
  server: ServerSight;
  tritonModel: string;
  state: PlacementState;
  proved: boolean;
  placedAt: string;
  observed: { state: string; reason: string | null; since: string } | null;
  memory: NonNullable<ObservedModel['memory']> | null;
  /** The server's document as published holds the model. */
  told: boolean;
  /** Variants that failed there for good before this one. */
  earlier?: { tritonModel: string; reason: string }[];
  /** On a server that is drained, or while it moves: what has to come about first; null: nothing. */
  waits: string | null;
  /** What still holds it back while it leaves; see `unloadObstacle`. */
  routedRevision: number | null;
  unroutedRevision: number | null;
  unroutedMs: number | null;
}

interface Row {
  deployment_id: string;
  server_id: string;
  triton_model: string;
  state: PlacementState;
  proved: boolean;
  created_at: Date;
  model_state: string | null;
  reason: string | null;
  since: Date | null;
  told: boolean;
  earlier: { tritonModel: string; reason: string }[];
  waits: string | null;
  routed_revision: string | null;
  unrouted_revision: string | null;
  unrouted_ms: string | null;
}

/**
 * What one endpoint's placements come to, for people: read at their request, never by a loop. Two queries an endpoint,
 * however many servers.
 */
@Injectable()
export class SightStore {
  async ofEndpoint(tx: Tx, endpoint: string): Promise<PlacementSight[]> {
    const rows: Row[] = await tx.query(
      `select p.deployment_id, p.server_id, p.triton_model, p.state, p.proved_at is not null as proved, p.created_at, p.earlier,
         m.state as model_state, m.reason, m.since, e.digest is not null as told, p.waits, p.routed_revision,
         p.unrouted_revision, extract(epoch from now() - p.unrouted_at) * 1000 as unrouted_ms
       from placements p
       left join server_models m on m.server_id = p.server_id and m.triton_model = p.triton_model
       left join document_entries e
         on e.document_id = 'server/' || p.server_id and e.section = 'models' and e.key = p.triton_model
       where p.endpoint = $1 and p.state <> 'released' order by p.server_id`,
      [endpoint],
    );
    const ids = [...new Set(rows.map((row) => row.server_id))];
    const models = [...new Set(rows.map((row) => row.triton_model))];
    const servers = await this.servers(tx, ids, models);
    return rows.map((row) => {
      const { sight, memory } = servers.get(row.server_id)!;
      return {
        deployment: row.deployment_id,
        server: sight,
        tritonModel: row.triton_model,
        state: row.state,
        proved: row.proved,
        placedAt: row.created_at.toISOString(),
        observed: row.model_state
          ? { state: row.model_state, reason: row.reason, since: row.since!.toISOString() }
          : null,
        memory: memory?.[row.triton_model] ?? null,
        told: row.told,
        waits: row.waits,
        routedRevision: numberOrNull(row.routed_revision),
        unroutedRevision: numberOrNull(row.unrouted_revision),
        unroutedMs: numberOrNull(row.unrouted_ms),
        earlier: row.earlier,
      };
    });
  }

  /** Each server's report is unpacked once, however many models it holds. */
  private async servers(tx: Tx, ids: readonly string[], models: readonly string[]) {
    if (ids.length === 0) return new Map<string, { sight: ServerSight; memory: MemoryByModel | null }>();
    const rows = await tx.query(
      `select s.id, s.name, s.pool, s.presence, s.last_seen_at, d.revision, s.observed - 'models' as observed, x.by_name as drained_by,
         (select jsonb_object_agg(k, s.observed #> array['models', k, 'memory']) from unnest($2::text[]) k
          where s.observed #> array['models', k, 'memory'] is not null) as memory
       from servers s left join documents d on d.id = 'server/' || s.id
       left join server_drains x on x.server_id = s.id where s.id = any($1::uuid[])`,
      [ids, models],
    );
    return new Map<string, { sight: ServerSight; memory: MemoryByModel | null }>(
      // biome-ignore lint/suspicious/noExplicitAny: a row of the query above
      rows.map((row: any) => [
        row.id,
        {
          memory: row.memory,
          sight: {
            id: row.id,
            name: row.name,
            pool: row.pool,
            presence: row.presence,
            lastSeenAt: row.last_seen_at.toISOString(),
            toldRevision: numberOrNull(row.revision),
            drainedBy: row.drained_by,
            observed: row.observed,
          },
        },
      ]),
    );
  }

  /** The published route of one endpoint: the value in the table, since which revision, and the table's own one. */
  async published(tx: Tx, endpoint: string): Promise<{ route: unknown; since: number | null; table: number | null }> {
    const [row] = await tx.query(
      `select e.value as route, e.revision as since, d.revision as "table" from documents d
       left join document_entries e on e.document_id = d.id and e.section = 'endpoints' and e.key = $1
       where d.id = 'routing-table'`,
      [endpoint],
    );
    return { route: row?.route ?? null, since: numberOrNull(row?.since), table: numberOrNull(row?.table) };
  }
}

const numberOrNull = (value: string | null | undefined): number | null =>
  value === null || value === undefined ? null : Number(value);

type MemoryByModel = Record<string, NonNullable<ObservedModel['memory']>>;
