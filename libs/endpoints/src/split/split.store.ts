import { Injectable } from '@nestjs/common';
import type { Route, SplitSpec } from '@perch/contracts';
import { routingTableDocument } from '@perch/fleet';
import type { Tx } from '@perch/platform/database';
import type { NamingSplit } from './split-member.plan.ts';
import type { SplitStanding } from './split-view.plan.ts';

export interface SplitRow {
  name: string;
  generation: number;
  /** Null: removed; the row keeps the name's generations. */
  spec: SplitSpec | null;
  updated_at: Date;
  updated_by: string;
}

/** A split that may have to be compiled anew. */
export interface SplitDue {
  name: string;
  generation: number;
  spec: SplitSpec | null;
  /** An endpoint has this name: the split is the weights of that endpoint, and its route is the endpoint's. */
  own: boolean;
}

const columns = 'name, generation, spec, updated_at, updated_by';
const isOwn = `exists (select 1 from endpoints e where e.name = s.name and e.spec is not null)`;
const below = (prefix: string, name: string) => `(${name} = ${prefix} or starts_with(${name}, ${prefix} || '/'))`;

/** The only SQL for splits and their generations. */
@Injectable()
export class SplitStore {
  async get(tx: Tx, name: string): Promise<SplitRow | undefined> {
    const [row] = await tx.query(`select ${columns} from splits where name = $1`, [name]);
    return row;
  }

  /** Held against other writers until the transaction ends. */
  async lock(tx: Tx, name: string): Promise<SplitRow | undefined> {
    const [row] = await tx.query(`select ${columns} from splits where name = $1 for update`, [name]);
    return row;
  }

  /** In order of names, from after `after`. */
  async list(tx: Tx, after: string | null, limit: number): Promise<SplitRow[]> {
    return tx.query(
      `select ${columns} from splits where spec is not null and ($1::text is null or name > $1) order by name limit $2`,
      [after, limit],
    );
  }

  /** `members`: endpoints that its fixed targets are of; `prefix`: below which it takes all. */
  async put(
    tx: Tx,
    next: Omit<SplitRow, 'updated_at' | 'updated_by'> & {
      members: readonly string[];
      prefix: string | null;
      actor: string;
      reason: string;
    },
  ): Promise<void> {
    const spec = next.spec === null ? null : JSON.stringify(next.spec);
    await tx.query(
      `insert into splits (name, generation, spec, members, prefix, updated_by) values ($1, $2, $3, $4, $5, $6)
       on conflict (name) do update set generation = excluded.generation, spec = excluded.spec,
         members = excluded.members, prefix = excluded.prefix, updated_by = excluded.updated_by, updated_at = now()`,
      [next.name, next.generation, spec, next.members, next.prefix, next.actor],
    );
    await tx.query(
      'insert into split_generations (split, generation, spec, actor, reason) values ($1, $2, $3, $4, $5)',
      [next.name, next.generation, spec, next.actor, next.reason],
    );
  }

  async generation(tx: Tx, name: string, generation: number): Promise<SplitSpec | null> {
    const [row] = await tx.query('select spec from split_generations where split = $1 and generation = $2', [
      name,
      generation,
    ]);
    return row?.spec ?? null;
  }

  /** Splits whose fixed targets are of this endpoint, or of its versions, and the one of its own name; in order of names. */
  async naming(tx: Tx, endpoint: string): Promise<NamingSplit[]> {
    return tx.query(
      `select name, spec from splits where spec is not null and (members @> array[$1::text] or name = $1) order by name`,
      [endpoint],
    );
  }

  /** The splits of this name, of the name above, and those below it. */
  async relatives(tx: Tx, name: string, parent: string | null): Promise<NamingSplit[]> {
    return tx.query(
      `select name, spec from splits where spec is not null and (name = any($1) or starts_with(name, $2 || '/')) order by name`,
      [[name, parent], name],
    );
  }

  /** Those of these names that are splits now. */
  async among(tx: Tx, names: readonly string[]): Promise<Set<string>> {
    const rows: { name: string }[] = await tx.query(
      'select name from splits where spec is not null and name = any($1)',
      [names],
    );
    return new Set(rows.map(({ name }) => name));
  }

  /** How long a request may take under the name of a split that sends to this endpoint; 0: there is none. */
  async longestTimeoutMs(tx: Tx, endpoint: string): Promise<number> {
    const [row] = await tx.query(
      `select coalesce(max((d.value ->> 'timeoutMs')::integer), 0) as longest from splits s
       join document_entries d on d.document_id = $2 and d.section = 'endpoints' and d.key = s.name and d.digest is not null
       where s.spec is not null and (s.members @> array[$1::text] or ${below('s.prefix', '$1::text')})`,
      [endpoint, routingTableDocument],
    );
    return row.longest;
  }

  /** How versions of these endpoints stand: their deployments that are not retired, newest first, then what was refused. */
  async standings(tx: Tx, endpoints: readonly string[]): Promise<SplitStanding[]> {
    return tx.query(
      `select endpoint, version, state, reason from (
         select endpoint, version, state, reason, 1 as place, created_at as at from deployments
         where endpoint = any($1) and state <> 'retired'
         union all
         select endpoint, version, 'failed', 'a rollout refused it: ' || reason, 2, since from quarantine where endpoint = any($1)) all_of_them
       order by place, version desc, at desc`,
      [endpoints],
    );
  }

  /**
   * Splits to be compiled anew: those that changed since their route was published, and those that a changed route of
   * an endpoint concerns. Nothing at all when there are no splits.
   */
  async due(tx: Tx, changed: readonly string[]): Promise<SplitDue[]> {
    return tx.query(
      `select s.name, s.generation, s.spec, ${isOwn} as own from splits s
       where s.routed_generation is distinct from s.generation
         or (s.spec is not null and (s.members && $1::text[]
           or exists (select 1 from unnest($1::text[]) c where ${below('s.prefix', 'c')})))
       order by s.name`,
      [changed],
    );
  }

  /** Their routes stand as these generations say (one that was changed meanwhile stays due); `refused` ones do not. */
  async markRouted(tx: Tx, splits: readonly SplitDue[], refused: readonly string[]): Promise<void> {
    if (splits.length === 0) return;
    const rows = splits.map(({ name, generation }) => ({
      name,
      generation: refused.includes(name) ? null : generation,
    }));
    await tx.query(
      `update splits s set routed_generation = r.generation
       from jsonb_to_recordset($1) as r(name text, generation integer)
       where s.name = r.name and s.routed_generation is distinct from r.generation`,
      [JSON.stringify(rows)],
    );
  }

  /** The next splits behind `after` are compiled again with the next table; answers their names. */
  async lookAgain(tx: Tx, after: string, most: number): Promise<string[]> {
    const [rows]: [{ name: string }[], number] = await tx.query(
      `update splits set routed_generation = null where name in (
         select name from splits where spec is not null and name > $1 order by name limit $2) returning name`,
      [after, most],
    );
    return rows.map(({ name }) => name).sort();
  }

  /** Routes as endpoints want them now; null: an endpoint that has none yet. */
  async memberRoutes(
    tx: Tx,
    members: readonly string[],
    prefixes: readonly string[],
  ): Promise<Map<string, Route | null>> {
    const rows: { name: string; route: Route | null }[] = await tx.query(
      `select e.name, r.route from endpoints e left join endpoint_routes r on r.endpoint = e.name
       where e.spec is not null and (e.name = any($1) or exists (select 1 from unnest($2::text[]) p where ${below('p', 'e.name')}))`,
      [members, prefixes],
    );
    return new Map(rows.map(({ name, route }) => [name, route]));
  }

  /** Routes of endpoints as the table in force holds them; not those of splits. */
  async publishedRoutes(tx: Tx, members: readonly string[], prefixes: readonly string[]): Promise<Map<string, Route>> {
    const rows: { key: string; value: Route }[] = await tx.query(
      `select d.key, d.value from document_entries d
       where d.document_id = $1 and d.section = 'endpoints' and d.digest is not null
         and (d.key = any($2) or exists (select 1 from unnest($3::text[]) p where ${below('p', 'd.key')}))
         and not exists (${splitOfName('d.key')})`,
      [routingTableDocument, members, prefixes],
    );
    return new Map(rows.map(({ key, value }) => [key, value]));
  }
}

/** A split that has this name for itself: its route in the table, present or still to be taken out, is no endpoint's. */
export const splitOfName = (name: string): string =>
  `select 1 from splits s where s.name = ${name} and not ${isOwn}
     and (s.spec is not null or s.routed_generation is distinct from s.generation)`;
