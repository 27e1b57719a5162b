import { Injectable } from '@nestjs/common';
import type { BoundProcessing, PipelineGeneration, PipelineSpec } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';

export interface PipelineRow {
  name: string;
  generation: number;
  /** Null: removed; the row keeps the name's generations. */
  spec: PipelineSpec | null;
  /** What its modules are bound to, by node. */
  modules: Record<string, BoundProcessing>;
  updated_at: Date;
  updated_by: string;
}

/** A pipeline that names something. */
export interface NamingPipeline {
  name: string;
  spec: PipelineSpec;
}

export interface PipelineDue extends Pick<PipelineRow, 'name' | 'generation' | 'spec' | 'modules'> {
  /** It was removed, and an endpoint or a split has its name now: the route is that one's. */
  taken: boolean;
}

const isTaken = (name: string) => `(exists (select 1 from endpoints e where e.name = ${name} and e.spec is not null)
  or exists (select 1 from splits s where s.name = ${name} and s.spec is not null))`;

const columns = 'name, generation, spec, modules, updated_at, updated_by';

/** The only SQL for pipelines and their generations. */
@Injectable()
export class PipelineStore {
  async get(tx: Tx, name: string): Promise<PipelineRow | undefined> {
    const [row] = await tx.query(`select ${columns} from pipelines where name = $1`, [name]);
    return row;
  }

  /** Held against other writers until the transaction ends. */
  async lock(tx: Tx, name: string): Promise<PipelineRow | undefined> {
    const [row] = await tx.query(`select ${columns} from pipelines where name = $1 for update`, [name]);
    return row;
  }

  /** In order of names, from after `after`. */
  async list(tx: Tx, after: string | null, limit: number): Promise<PipelineRow[]> {
    return tx.query(
      `select ${columns} from pipelines where spec is not null and ($1::text is null or name > $1) order by name limit $2`,
      [after, limit],
    );
  }

  /** `members`: endpoints, splits and pipelines that its nodes ask. */
  async put(
    tx: Tx,
    next: Pick<PipelineRow, 'name' | 'generation' | 'spec' | 'modules'> & {
      members: readonly string[];
      actor: string;
      reason: string;
    },
  ): Promise<void> {
    const spec = next.spec === null ? null : JSON.stringify(next.spec);
    await tx.query(
      `insert into pipelines (name, generation, spec, members, modules, updated_by) values ($1, $2, $3, $4, $5, $6)
       on conflict (name) do update set generation = excluded.generation, spec = excluded.spec,
         members = excluded.members, modules = excluded.modules, updated_by = excluded.updated_by, updated_at = now()`,
      [next.name, next.generation, spec, next.members, JSON.stringify(next.modules), next.actor],
    );
    await tx.query(
      'insert into pipeline_generations (pipeline, generation, spec, actor, reason) values ($1, $2, $3, $4, $5)',
      [next.name, next.generation, spec, next.actor, next.reason],
    );
  }

  /** Newest first. */
  async generations(tx: Tx, name: string): Promise<PipelineGeneration[]> {
    const rows: (Omit<PipelineGeneration, 'createdAt'> & { created_at: Date })[] = await tx.query(
      `select generation, spec, actor, reason, created_at from pipeline_generations where pipeline = $1
       order by generation desc`,
      [name],
    );
    return rows.map(({ created_at, ...row }) => ({ ...row, createdAt: created_at.toISOString() }));
  }

  async generation(tx: Tx, name: string, generation: number): Promise<PipelineSpec | null> {
    const [row] = await tx.query('select spec from pipeline_generations where pipeline = $1 and generation = $2', [
      name,
      generation,
    ]);
    return row?.spec ?? null;
  }

  /** Pipelines with a node that asks `member`, in order of names. */
  async naming(tx: Tx, member: string): Promise<NamingPipeline[]> {
    return tx.query(
      'select name, spec from pipelines where spec is not null and members @> array[$1::text] order by name',
      [member],
    );
  }

  /** The pipelines of this name, of the name above, and those below it. */
  async relatives(tx: Tx, name: string, parent: string | null): Promise<string[]> {
    const rows: { name: string }[] = await tx.query(
      `select name from pipelines where spec is not null and (name = any($1) or starts_with(name, $2 || '/')) order by name`,
      [[name, parent], name],
    );
    return rows.map((row) => row.name);
  }

  /** Those of these names that are pipelines, and all that they lead to, with what each asks. */
  async reached(tx: Tx, names: readonly string[]): Promise<Map<string, string[]>> {
    const rows: { name: string; members: string[] }[] = await tx.query(
      `with recursive reached as (
         select name, members from pipelines where spec is not null and name = any($1)
         union select p.name, p.members from pipelines p join reached r on p.name = any(r.members) where p.spec is not null)
       select name, members from reached`,
      [names],
    );
    return new Map(rows.map(({ name, members }) => [name, members]));
  }

  /** Pipelines whose route is not as they are. */
  async due(tx: Tx): Promise<PipelineDue[]> {
    return tx.query(
      `select name, generation, spec, modules, spec is null and ${isTaken('pipelines.name')} as taken from pipelines
       where routed_generation is distinct from generation order by name`,
    );
  }

  /** Their routes stand as these generations say; one that was changed meanwhile stays due. */
  async markRouted(tx: Tx, pipelines: readonly PipelineDue[]): Promise<void> {
    if (pipelines.length === 0) return;
    const rows = pipelines.map(({ name, generation }) => ({ name, generation }));
    await tx.query(
      `update pipelines p set routed_generation = r.generation
       from jsonb_to_recordset($1) as r(name text, generation integer) where p.name = r.name`,
      [JSON.stringify(rows)],
    );
  }

  /** Pipelines that name a module by number: now, or in a generation that was in force within `days`. */
  async namingModule(tx: Tx, reference: string, days: number): Promise<{ name: string; now: boolean }[]> {
    return tx.query(
      `select p.name, bool_or(g.generation = p.generation) as now from pipelines p
       join pipeline_generations g on g.pipeline = p.name
       where p.spec is not null and exists (select 1 from jsonb_each(g.spec -> 'nodes') n where n.value ->> 'module' = $1)
         and coalesce((select min(n.created_at) from pipeline_generations n
           where n.pipeline = g.pipeline and n.generation > g.generation), now()) > now() - $2 * interval '1 day'
       group by p.name order by p.name`,
      [reference, days],
    );
  }

  /** Names of servers by id. */
  async serverNames(tx: Tx, ids: readonly string[]): Promise<Map<string, string>> {
    const rows: { id: string; name: string }[] = await tx.query(
      'select id::text as id, name from servers where id::text = any($1)',
      [ids],
    );
    return new Map(rows.map(({ id, name }) => [id, name]));
  }
}

/** A pipeline has this name: its route in the table, present or still to be taken out, is no endpoint's. */
export const pipelineOfName = (name: string): string =>
  `select 1 from pipelines p where p.name = ${name}
     and (p.spec is not null or (p.routed_generation is distinct from p.generation and not ${isTaken('p.name')}))`;
