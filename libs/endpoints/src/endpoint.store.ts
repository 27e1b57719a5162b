import { Injectable } from '@nestjs/common';
import type { EndpointGeneration, EndpointSpec, EndpointStatus } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { NamedEndpoint } from './resolve/name.plan.ts';

export interface EndpointRow {
  name: string;
  generation: number;
  /** Null: removed; the row keeps the name's generations. */
  spec: EndpointSpec | null;
  status: EndpointStatus;
  updated_at: Date;
  updated_by: string;
  /** Rollouts refused something of it. */
  refuses?: boolean;
}

const columns = 'name, generation, spec, status, updated_at, updated_by';

/** The only SQL for endpoints and their generations. */
@Injectable()
export class EndpointStore {
  async get(tx: Tx, name: string): Promise<EndpointRow | undefined> {
    const [row] = await tx.query(
      `select ${columns}, exists (select 1 from quarantine q where q.endpoint = name) as refuses
       from endpoints where name = $1`,
      [name],
    );
    return row;
  }

  /** Specs of those of these names that are endpoints now. */
  async specs(tx: Tx, names: readonly string[]): Promise<Map<string, EndpointSpec>> {
    const rows: { name: string; spec: EndpointSpec }[] = await tx.query(
      'select name, spec from endpoints where spec is not null and name = any($1)',
      [names],
    );
    return new Map(rows.map(({ name, spec }) => [name, spec]));
  }

  /** Held against other writers and passes until the transaction ends; rows that refer to it may be written meanwhile. */
  async lock(tx: Tx, name: string): Promise<EndpointRow | undefined> {
    const [row] = await tx.query(`select ${columns} from endpoints where name = $1 for no key update`, [name]);
    return row;
  }

  /** In order of names, from after `after`; `prefixes` null: all. */
  async list(tx: Tx, after: string | null, limit: number): Promise<EndpointRow[]> {
    return tx.query(
      `select ${columns} from endpoints where spec is not null and ($1::text is null or name > $1) order by name limit $2`,
      [after, limit],
    );
  }

  /** Serialises the creation of names that may hide one another, also names that do not exist yet. */
  async lockNames(tx: Tx, names: readonly string[]): Promise<void> {
    for (const name of names) await tx.query(`select pg_advisory_xact_lock(hashtextextended($1, 7137302))`, [name]);
  }

  /** The endpoint above this name, and those right below it, as far as names go. */
  async relatives(tx: Tx, name: string, parent: string | null): Promise<NamedEndpoint[]> {
    return tx.query(
      `select name, (spec #>> '{model,version}')::integer as "onlyVersion" from endpoints
       where spec is not null and (name = $2 or starts_with(name, $1 || '/'))`,
      [name, parent],
    );
  }

  async put(
    tx: Tx,
    next: {
      name: string;
      generation: number;
      spec: EndpointSpec | null;
      status: EndpointStatus;
      actor: string;
      reason: string;
    },
  ): Promise<void> {
    const spec = next.spec === null ? null : JSON.stringify(next.spec);
    await tx.query(
      `insert into endpoints (name, generation, spec, status, updated_by) values ($1, $2, $3, $4, $5)
       on conflict (name) do update set generation = excluded.generation, spec = excluded.spec, status = excluded.status,
         updated_by = excluded.updated_by, updated_at = now()`,
      [next.name, next.generation, spec, JSON.stringify(next.status), next.actor],
    );
    await tx.query(
      'insert into endpoint_generations (endpoint, generation, spec, actor, reason) values ($1, $2, $3, $4, $5)',
      [next.name, next.generation, spec, next.actor, next.reason],
    );
  }

  async saveStatus(tx: Tx, name: string, status: EndpointStatus): Promise<void> {
    await tx.query('update endpoints set status = $2 where name = $1', [name, JSON.stringify(status)]);
  }

  /** Newest first. */
  async generations(tx: Tx, name: string): Promise<EndpointGeneration[]> {
    const rows = await tx.query(
      `select generation, spec, actor, reason, created_at from endpoint_generations where endpoint = $1
       order by generation desc`,
      [name],
    );
    return rows.map(toGeneration);
  }

  async generation(tx: Tx, name: string, generation: number): Promise<EndpointGeneration | undefined> {
    const [row] = await tx.query(
      `select generation, spec, actor, reason, created_at from endpoint_generations
       where endpoint = $1 and generation = $2`,
      [name, generation],
    );
    return row && toGeneration(row);
  }

  async namesOfModel(tx: Tx, project: string, model: string): Promise<string[]> {
    return names(
      await tx.query('select name from endpoints where project = $1 and model = $2 order by name', [project, model]),
    );
  }
  /** Endpoints whose `model.source` begins with one of these scopes; null: with any. */
  async namesOfSource(tx: Tx, scopes: readonly string[] | null): Promise<string[]> {
    return names(
      await tx.query(
        `select name from endpoints where spec #>> '{model,source}' is not null
           and ($1::text[] is null or split_part(spec #>> '{model,source}', '/', 1) = any($1)) order by name`,
        [scopes],
      ),
    );
  }
  async namesOfPool(tx: Tx, pool: string): Promise<string[]> {
    return names(await tx.query('select name from endpoints where pool = $1 order by name', [pool]));
  }
  /** Those after `after` that may need a look: endpoints that are there, and removed ones that still hold deployments. */
  async someNames(tx: Tx, after: string, most: number): Promise<string[]> {
    return names(
      await tx.query(
        `select name from endpoints e where name > $1 and (spec is not null
           or exists (select 1 from deployments d where d.endpoint = e.name and d.state <> 'retired')) order by name limit $2`,
        [after, most],
      ),
    );
  }
}

const names = (rows: { name: string }[]) => rows.map(({ name }) => name);

const toGeneration = (row: {
  generation: number;
  spec: EndpointSpec | null;
  actor: string;
  reason: string;
  created_at: Date;
}): EndpointGeneration => ({
  generation: row.generation,
  spec: row.spec,
  actor: row.actor,
  reason: row.reason,
  createdAt: row.created_at.toISOString(),
});
