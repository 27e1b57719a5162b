import { Injectable } from '@nestjs/common';
import type { ExternalMode, RegisterServer } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { Presence } from '../server.store.ts';

export interface ExternalRow {
  id: string;
  name: string;
  pool: string;
  http: string;
  grpc: string;
  mode: ExternalMode;
  headers: Record<string, string>;
  problem: string | null;
  boot_id: string | null;
  observed_hash: string | null;
}

/** What one server without an agent says of one version of a model; `state` null: it does not hold it. */
export interface Holding {
  server: string;
  serverName: string;
  presence: Presence;
  drain: 'forced' | 'orderly' | null;
  /** Triton's own text. */
  version: string;
  state: string;
}

const columns = 'id, name, pool, http, grpc, mode, headers, problem, boot_id, observed_hash';
/** A name stands for the server of that name, else for the pool. */
const inScope = `s.mode is not null and (s.name = $1
  or (s.pool = $1 and not exists (select 1 from servers n where n.name = $1 and n.mode is not null)))`;

/** The only SQL for servers without an agent, beside what they share with the others. */
@Injectable()
export class ExternalStore {
  async ids(tx: Tx): Promise<string[]> {
    const rows: { id: string }[] = await tx.query('select id from servers where mode is not null order by id');
    return rows.map(({ id }) => id);
  }

  async get(tx: Tx, id: string): Promise<ExternalRow | undefined> {
    const [row] = await tx.query(`select ${columns} from servers where id = $1 and mode is not null`, [id]);
    return row;
  }

  /** Every server of that name, with an agent or without, or of a pool of that name. */
  async named(tx: Tx, name: string): Promise<{ id: string; name: string; pool: string; mode: ExternalMode | null }[]> {
    return tx.query('select id, name, pool, mode from servers where name = $1 or pool = $1 for no key update', [name]);
  }

  async put(tx: Tx, id: string, { name, pool, url, grpc, mode, labels, headers }: RegisterServer): Promise<void> {
    await tx.query(
      `insert into servers (id, name, pool, labels, http, grpc, token_hash, mode, headers, presence)
       values ($1, $2, $3, $4, $5, $6, $9, $7, $8, 'silent')
       on conflict (id) do update set pool = excluded.pool, labels = excluded.labels, http = excluded.http, grpc = excluded.grpc,
         mode = excluded.mode, headers = excluded.headers, problem = null, observed_hash = null`,
      [
        id,
        name,
        pool,
        JSON.stringify(labels),
        url.replace('http://', ''),
        grpc,
        mode,
        JSON.stringify(headers),
        `external ${id}`,
      ],
    );
  }

  /** Of the document that says what it is to hold; 0: there is none yet. */
  async revision(tx: Tx, id: string): Promise<number> {
    const [row] = await tx.query(`select revision from documents where id = 'server/' || $1`, [id]);
    return Number(row?.revision ?? 0);
  }

  /** False: that is what was known. */
  async setProblem(tx: Tx, id: string, problem: string | null): Promise<boolean> {
    const [, count] = await tx.query('update servers set problem = $2 where id = $1 and problem is distinct from $2', [
      id,
      problem,
    ]);
    return count > 0;
  }

  /** Wants that nothing is placed on it. */
  async remove(tx: Tx, id: string): Promise<void> {
    await tx.query('delete from placements where server_id = $1', [id]);
    await tx.query(`delete from documents where id = 'server/' || $1`, [id]);
    await tx.query('delete from servers where id = $1', [id]);
  }

  /** What the servers of a scope (a server's name, or a pool's) hold of one model; one row with an empty version for each that holds none. */
  async holdings(tx: Tx, scope: string, model: string): Promise<Holding[]> {
    return tx.query(
      `select s.id as server, s.name as "serverName", s.presence,
         case when d.server_id is null then null when d.forced then 'forced' else 'orderly' end as drain,
         coalesce(split_part(m.triton_model, '/', 2), '') as version, coalesce(m.state, '') as state
       from servers s left join server_drains d on d.server_id = s.id
       left join server_models m on m.server_id = s.id and split_part(m.triton_model, '/', 1) = $2 and m.triton_model <> $2
       where ${inScope} order by s.id, m.triton_model`,
      [scope, model],
    );
  }
}
