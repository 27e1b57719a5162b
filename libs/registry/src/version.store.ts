import { Injectable } from '@nestjs/common';
import { AppError, type ManifestFile, type Version } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { IsNull, LessThan } from 'typeorm';
import { VersionEntity } from './version.entity.ts';
import { VersionFileEntity } from './version-file.entity.ts';

export type NewVersion = Omit<
  VersionEntity,
  'model' | 'createdAt' | 'completedAt' | 'publishedAt' | 'signature' | 'facts' | 'deletedAt'
>;
export type VersionChange = Partial<
  Pick<
    VersionEntity,
    | 'state' | 'framework' | 'signature' | 'facts' | 'tags' | 'description' | 'metadata' | 'lineage'
    | 'completedAt' | 'publishedAt' | 'uploadExpiresAt'
  >
>; // biome-ignore format: one list

const notFound = (project: string, name: string, number: number) =>
  new AppError('not_found', `version ${number} of model ${project}/${name} does not exist`);

/** The only SQL for versions and their files. */
@Injectable()
export class VersionStore {
  async insert(tx: Tx, version: NewVersion): Promise<void> {
    await tx.insert(VersionEntity, version as never);
  }

  async insertFiles(tx: Tx, versionId: string, files: readonly (ManifestFile & { blobId: string })[]): Promise<void> {
    await tx.query(
      `insert into version_files (version_id, path, sha256, size_bytes, blob_id)
       select $1, * from unnest($2::text[], $3::text[], $4::bigint[], $5::uuid[])`,
      [
        versionId,
        files.map((file) => file.path),
        files.map((file) => file.sha256),
        files.map((file) => file.size),
        files.map((file) => file.blobId),
      ],
    );
  }

  async get(tx: Tx, project: string, name: string, number: number): Promise<VersionEntity> {
    const found = await tx.findOne(VersionEntity, {
      where: { number, model: { project, name }, deletedAt: IsNull() },
      relations: { model: true },
    });
    if (!found) throw notFound(project, name, number);
    return found;
  }

  /** The same, held against other writers until the transaction ends. */
  async lock(tx: Tx, project: string, name: string, number: number): Promise<VersionEntity> {
    const [row] = await tx.query(
      `select v.id from versions v join models m on m.id = v.model_id
       where m.project = $1 and m.name = $2 and v.number = $3 and v.deleted_at is null for update of v`,
      [project, name, number],
    );
    if (!row) throw notFound(project, name, number);
    return this.get(tx, project, name, number);
  }

  /** Newest first, in whatever state, those still uploading too. */
  async list(tx: Tx, project: string, name: string): Promise<VersionEntity[]> {
    return tx.find(VersionEntity, {
      where: { model: { project, name }, deletedAt: IsNull() },
      relations: { model: true },
      order: { number: 'DESC' },
    });
  }

  /**
   * The version that an upload of these bytes, with these uses and this processing, goes on with: one still uploading, a draft that was never published, or the
   * newest version unless it is archived. Held against the sweep.
   */
  async sameBytes(
    tx: Tx,
    modelId: string,
    manifestDigest: string,
    { uses, processing }: Pick<VersionEntity, 'uses' | 'processing'>,
  ): Promise<number | undefined> {
    const [row] = await tx.query(
      `select number from versions v where model_id = $1 and manifest_digest = $2 and uses = $3
         and processing is not distinct from $4::jsonb and deleted_at is null and (
         state = 'uploading' or (state = 'draft' and published_at is null) or (state <> 'archived'
         and number = (select max(number) from versions where model_id = $1 and state <> 'uploading' and deleted_at is null)))
       order by state = 'uploading' desc, number desc limit 1 for update`,
      [modelId, manifestDigest, JSON.stringify(uses), processing && JSON.stringify(processing)],
    );
    return row?.number;
  }

  /** Models (`project/name`) with a version that may be served and uses the given one. */
  async modelsUsing(tx: Tx, model: string): Promise<string[]> {
    const rows: { model: string }[] = await tx.query(
      `select distinct m.project || '/' || m.name as model from versions v join models m on m.id = v.model_id
       where v.uses <> '{}' and v.state in ('draft', 'published') and v.deleted_at is null
         and exists (select 1 from jsonb_each(v.uses) u where u.value ->> 'model' = $1) order by 1`,
      [model],
    );
    return rows.map((row) => row.model);
  }

  /** Versions (`project/name@3`) that may be served and whose code calls the model, or this version of it by number. */
  async versionsUsing(tx: Tx, model: string, number: number | null): Promise<string[]> {
    const rows: { version: string }[] = await tx.query(
      `select m.project || '/' || m.name || '@' || v.number as version from versions v join models m on m.id = v.model_id
       where v.uses <> '{}' and v.state in ('draft', 'published') and v.deleted_at is null
         and exists (select 1 from jsonb_each(v.uses) u where u.value ->> 'model' = $1
           and ($2::integer is null or (u.value ->> 'version')::integer = $2)) order by m.project, m.name, v.number`,
      [model, number],
    );
    return rows.map((row) => row.version);
  }

  async change(tx: Tx, id: string, change: VersionChange): Promise<void> {
    if (Object.keys(change).length > 0) await tx.update(VersionEntity, { id }, change as never);
  }

  async files(tx: Tx, versionId: string): Promise<VersionFileEntity[]> {
    return tx.find(VersionFileEntity, { where: { versionId }, order: { path: 'ASC' } });
  }

  /** Uploads whose time was over at `before`. */
  async abandoned(tx: Tx, before: Date, limit: number): Promise<VersionEntity[]> {
    return tx.find(VersionEntity, {
      where: { state: 'uploading', uploadExpiresAt: LessThan(before) },
      relations: { model: true },
      order: { uploadExpiresAt: 'ASC' },
      take: limit,
    });
  }

  /** From now on it is not there for anybody; its files stay until garbage is collected. */
  async markDeleted(tx: Tx, ids: readonly string[]): Promise<void> {
    await tx.query(`update versions set deleted_at = now(), state = 'archived' where id = any($1)`, [ids]);
  }

  async delete(tx: Tx, id: string): Promise<void> {
    await tx.delete(VersionEntity, { id });
  }
}

export const toFile = (file: VersionFileEntity): ManifestFile => ({
  path: file.path,
  sha256: file.sha256,
  size: file.sizeBytes,
});

export const nameOf = (version: VersionEntity): string =>
  `version ${version.number} of model ${version.model.project}/${version.model.name}`;

export const toVersion = (version: VersionEntity, files?: readonly VersionFileEntity[]): Version => ({
  id: version.id,
  project: version.model.project,
  name: version.model.name,
  number: version.number,
  state: version.state,
  manifestDigest: version.manifestDigest,
  ...(files ? { files: files.map(toFile) } : {}),
  sizeBytes: version.sizeBytes,
  framework: version.framework,
  signature: version.signature,
  ...(version.facts ? { facts: version.facts } : {}),
  tags: version.tags,
  description: version.description,
  metadata: version.metadata,
  lineage: version.lineage,
  uses: version.uses,
  ...(version.processing ? { processing: version.processing } : {}),
  author: version.author,
  createdAt: version.createdAt.toISOString(),
  publishedAt: version.publishedAt?.toISOString() ?? null,
});
