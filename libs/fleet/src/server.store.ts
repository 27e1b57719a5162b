import { Injectable } from '@nestjs/common';
import type { ExternalMode, ObservedModel, ObservedServer, ServerFacts, ServerUsage } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { deviceOf } from './placement/memory.plan.ts';

export type Presence = 'live' | 'silent' | 'lost';

export interface ServerRow {
  id: string;
  name: string;
  pool: string;
  labels: Record<string, string>;
  http: string;
  grpc: string;
  presence: Presence;
  boot_id: string | null;
  observed_hash: string | null;
  /** Null: it has an agent. */
  mode: ExternalMode | null;
  problem: string | null;
  observed: ObservedServer | null;
  last_seen_at: Date;
  revision: string | null;
}

export interface NewServer {
  id: string;
  name: string;
  pool: string;
  labels: Record<string, string>;
  http: string;
  grpc: string;
  tokenHash: string;
}

/** A server as it was before its last word. */
export type Beaten = Pick<ServerRow, 'presence' | 'observed_hash' | 'boot_id' | 'pool' | 'http' | 'grpc' | 'mode'> & {
  facts: ServerFacts | null;
  /** Who takes it out of service; null: nobody. */
  drained_by: string | null;
};

export interface DrainRow {
  server_id: string;
  since: Date;
  by_name: string;
  reason: string;
  forced: boolean;
}

const columns = `s.id, s.name, s.pool, s.labels, s.http, s.grpc, s.presence, s.boot_id, s.observed_hash, s.last_seen_at, s.mode, s.problem`;

export interface ServerModel {
  state: string;
  reason: string | null;
  since: string;
  memory: ObservedModel['memory'] | null;
}

const jsonOrNull = (value: ServerFacts | ServerUsage | undefined) => (value ? JSON.stringify(value) : null);

/** The only SQL for servers and what they reported. */
@Injectable()
export class ServerStore {
  /** The same machine come back: same name, and the same address or no word from the old one for a while. */
  async findPredecessor(tx: Tx, name: string, http: string, silentMs: number): Promise<ServerRow | undefined> {
    const [row] = await tx.query(
      `select ${columns} from servers s where name = $1 and mode is null
         and (http = $2 or last_seen_at < now() - $3 * interval '1 millisecond')
       order by (http = $2) desc, last_seen_at desc limit 1 for no key update`,
      [name, http, silentMs],
    );
    return row;
  }

  async put(tx: Tx, server: NewServer): Promise<void> {
    await tx.query(
      `insert into servers (id, name, pool, labels, http, grpc, token_hash) values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (id) do update set pool = excluded.pool, labels = excluded.labels, http = excluded.http,
         grpc = excluded.grpc, token_hash = excluded.token_hash, presence = 'live', last_seen_at = now(),
         boot_id = null, observed_hash = null`,
      [server.id, server.name, server.pool, JSON.stringify(server.labels), server.http, server.grpc, server.tokenHash],
    );
  }

  async byToken(tx: Tx, tokenHash: string): Promise<{ id: string; pool: string } | undefined> {
    const [row] = await tx.query('select id, pool from servers where token_hash = $1', [tokenHash]);
    return row;
  }

  /** The heartbeat. Answers the presence before it and the state's hash that we hold. */
  async beat(tx: Tx, id: string): Promise<Beaten> {
    const [row] = await tx
      .query(
        `update servers s set last_seen_at = now(), presence = 'live' from servers old
       where s.id = $1 and old.id = s.id returning old.presence, old.observed_hash, old.boot_id, old.pool, old.http, old.grpc, old.facts, old.mode,
         (select by_name from server_drains d where d.server_id = s.id) as drained_by`,
        [id],
      )
      .then(([rows]) => rows);
    return row;
  }

  async move(tx: Tx, id: string, { http, grpc }: Pick<ServerRow, 'http' | 'grpc'>): Promise<void> {
    await tx.query('update servers set http = $2, grpc = $3 where id = $1', [id, http, grpc]);
  }

  async lock(tx: Tx, id: string): Promise<void> {
    await tx.query('select 1 from servers where id = $1 for no key update', [id]);
  }

  async saveObserved(tx: Tx, id: string, bootId: string, hash: string, observed: ObservedServer): Promise<void> {
    const { facts, usage } = observed;
    await tx.query(
      `update servers set boot_id = $2, observed_hash = $3, observed = $4, facts = $5, usage = $6, device = $7 where id = $1`,
      [id, bootId, hash, JSON.stringify(observed), jsonOrNull(facts), jsonOrNull(usage), deviceOf(facts)],
    );
  }

  /** The state with some models changed and some gone; the others stay as they were told before. */
  async patchObserved(
    tx: Tx,
    id: string,
    hash: string,
    observed: ObservedServer,
    gone: readonly string[],
  ): Promise<void> {
    const { facts, usage } = observed;
    await tx.query(
      `update servers set observed_hash = $2, facts = $4, usage = $5, device = $6, observed = $3::jsonb || jsonb_build_object(
         'models', (coalesce(observed -> 'models', '{}') || ($3::jsonb -> 'models')) - $7::text[]) where id = $1`,
      [id, hash, JSON.stringify(observed), jsonOrNull(facts), jsonOrNull(usage), deviceOf(facts), gone],
    );
  }

  /** All models of the server, or those named. */
  async models(tx: Tx, id: string, names: readonly string[] | null = null): Promise<Map<string, ServerModel>> {
    const rows: (Omit<ServerModel, 'since'> & { triton_model: string; since: Date })[] = await tx.query(
      `select triton_model, state, reason, since, memory from server_models
       where server_id = $1${names === null ? '' : ' and triton_model = any($2)'}`,
      names === null ? [id] : [id, names],
    );
    return new Map(
      rows.map(({ triton_model, state, reason, since, memory }) => [
        triton_model,
        { state, reason, since: since.toISOString(), memory },
      ]),
    );
  }

  async saveModels(
    tx: Tx,
    id: string,
    changed: readonly (ObservedModel & { name: string })[],
    gone: readonly string[],
  ): Promise<void> {
    if (gone.length > 0)
      await tx.query('delete from server_models where server_id = $1 and triton_model = any($2)', [id, gone]);
    if (changed.length === 0) return;
    await tx.query(
      `insert into server_models (server_id, triton_model, state, reason, since, inputs, outputs, max_batch_size, memory)
       select $1, name, state, reason, since, inputs, outputs, "maxBatchSize", memory from jsonb_to_recordset($2)
         as r(name text, state text, reason text, since timestamptz, inputs jsonb, outputs jsonb, "maxBatchSize" integer, memory jsonb)
       on conflict (server_id, triton_model) do update set state = excluded.state, reason = excluded.reason,
         since = excluded.since, inputs = excluded.inputs, outputs = excluded.outputs, max_batch_size = excluded.max_batch_size,
         memory = coalesce(excluded.memory, server_models.memory)`,
      [id, JSON.stringify(changed)],
    );
  }

  async list(tx: Tx): Promise<ServerRow[]> {
    return tx.query(
      `select ${columns}, s.observed, d.revision from servers s left join documents d on d.id = 'server/' || s.id
       order by s.pool, s.name, s.id`,
    );
  }

  async ids(tx: Tx): Promise<string[]> {
    const rows: { id: string }[] = await tx.query(`select id from servers where presence <> 'lost' order by id`);
    return rows.map(({ id }) => id);
  }

  /** By id, or by name: several rows when the name is not one server's alone. */
  async find(tx: Tx, key: string): Promise<{ id: string; name: string; pool: string }[]> {
    return tx.query(
      `select id, name, pool from servers where id::text = $1 or name = $1 order by (id::text = $1) desc, last_seen_at desc`,
      [key],
    );
  }

  async drain(tx: Tx, id: string, by: string, reason: string, forced: boolean): Promise<void> {
    await tx.query(
      `insert into server_drains (server_id, by_name, reason, forced) values ($1, $2, $3, $4)
       on conflict (server_id) do update set by_name = excluded.by_name, reason = excluded.reason, forced = excluded.forced`,
      [id, by, reason, forced],
    );
  }

  /** False: it was in service. */
  async undrain(tx: Tx, id: string): Promise<boolean> {
    const [, count] = await tx.query('delete from server_drains where server_id = $1', [id]);
    return count === 1;
  }

  async drains(tx: Tx): Promise<DrainRow[]> {
    return tx.query('select server_id, since, by_name, reason, forced from server_drains');
  }

  /** Notes who went quiet; answers the servers whose presence changed. Time runs only while somebody is watching. */
  async sweep(tx: Tx, silentMs: number, lostMs: number): Promise<{ id: string; pool: string; presence: Presence }[]> {
    return tx
      .query(
        `update servers s set presence = n.presence from (
           select id, case when quiet > $2 * interval '1 millisecond' then 'lost'
                           when missed > $1 * interval '1 millisecond' then 'silent' else 'live' end as presence
           from (select s.id, now() - greatest(s.last_seen_at, i.watching_since) as quiet,
                        now() - greatest(s.last_seen_at, i.servers_watched_since) as missed
                 from servers s cross join installation i) q
         ) n where n.id = s.id and n.presence <> s.presence and n.presence <> 'live'
         returning s.id, s.pool, s.presence`,
        [silentMs, lostMs],
      )
      .then(([rows]) => rows);
  }
}
