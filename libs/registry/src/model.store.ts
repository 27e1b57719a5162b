import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { ListModels, Model } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { ModelEntity } from './model.entity.ts';

export interface ModelSearch extends Pick<ListModels, 'project' | 'name'> {
  tags: readonly string[];
  metadata: Readonly<Record<string, string>>;
  /** Projects the asker may see; undefined: all. */
  projects: readonly string[] | undefined;
  /** `project/name` after which the page starts. */
  after: { project: string; name: string } | undefined;
  limit: number;
}

const likePattern = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`;

@Injectable()
export class ModelStore {
  /** The model's row, made when it is new and locked until the transaction ends: numbers are given one at a time. */
  async lock(tx: Tx, project: string, name: string): Promise<ModelEntity> {
    await tx.query(
      `insert into models (id, project, name) values ($1, $2, $3)
       on conflict (project, name) do update set deleted_at = null where models.deleted_at is not null`,
      [randomUUID(), project, name],
    );
    return tx.findOneOrFail(ModelEntity, { where: { project, name }, lock: { mode: 'pessimistic_write' } });
  }

  async moveCounter(tx: Tx, id: string, nextNumber: number): Promise<void> {
    await tx.update(ModelEntity, { id }, { nextNumber });
  }

  /** Its row stays, and with it the counter of its numbers; the next upload brings it back. */
  async markDeleted(tx: Tx, id: string): Promise<void> {
    await tx.query('update models set deleted_at = now() where id = $1', [id]);
  }

  async find(tx: Tx, project: string, name: string): Promise<Model | undefined> {
    const [row] = await tx.query(`${selectModels} where m.project = $1 and m.name = $2 and m.deleted_at is null`, [
      project,
      name,
    ]);
    return row && toModel(row);
  }

  /** Models in order of project and name; one of `limit + 1` rows too many tells that there is a next page. */
  async search(tx: Tx, wanted: ModelSearch): Promise<Model[]> {
    const rows = await tx.query(
      `${selectModels}
       where m.deleted_at is null and ($1::text is null or m.project = $1) and ($2::text is null or m.name ilike $2)
         and ($3::text[] is null or m.project = any($3))
         and ($4::text is null or (m.project, m.name) > ($4, $5::text))
         and ((cardinality($6::text[]) = 0 and $7::jsonb = '{}') or exists (
           select 1 from versions v where v.model_id = m.id and v.state <> 'uploading' and v.deleted_at is null and v.tags @> $6 and v.metadata @> $7))
       order by m.project, m.name limit $8`,
      [
        wanted.project ?? null,
        wanted.name === undefined ? null : likePattern(wanted.name),
        wanted.projects ?? null,
        wanted.after?.project ?? null,
        wanted.after?.name ?? null,
        wanted.tags,
        JSON.stringify(wanted.metadata),
        wanted.limit,
      ],
    );
    return rows.map(toModel);
  }
}

const selectModels = `select m.id, m.project, m.name, m.created_at, s.* from models m cross join lateral (
  select max(number) as latest, max(number) filter (where state = 'published') as published, count(*)::integer as versions,
    coalesce((select array_agg(distinct tag order by tag) from versions t, unnest(t.tags) tag
              where t.model_id = m.id and t.deleted_at is null and t.state in ('draft', 'published')), '{}') as tags
  from versions v where v.model_id = m.id and v.state <> 'uploading' and v.deleted_at is null) s`;

interface ModelRow {
  id: string;
  project: string;
  name: string;
  created_at: Date;
  latest: number | null;
  published: number | null;
  versions: number;
  tags: string[];
}
const toModel = (row: ModelRow): Model => ({
  id: row.id,
  project: row.project,
  name: row.name,
  latestVersion: row.latest,
  latestPublished: row.published,
  versions: row.versions,
  tags: row.tags,
  createdAt: row.created_at.toISOString(),
});
