import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';

/** A deleted version or module whose files are still there. */
export interface Deleted {
  id: string;
  /** `project/name@3`, `name@3` */
  name: string;
  sizeBytes: number;
  hashes: string[];
}
export interface LooseBlob {
  id: string;
  sha256: string;
  sizeBytes: number;
}

/** What the collection of garbage asks of the registry's tables. */
@Injectable()
export class GarbageStore {
  /** Versions deleted before `before` whose files are still there. */
  async deletedVersions(tx: Tx, before: Date): Promise<Deleted[]> {
    const rows = await tx.query(
      `select v.id, m.project || '/' || m.name || '@' || v.number as name, v.size_bytes, array_agg(distinct f.sha256) as hashes
       from versions v join models m on m.id = v.model_id join version_files f on f.version_id = v.id
       where v.deleted_at < $1 group by v.id, m.id order by v.deleted_at`,
      [before],
    );
    return rows.map(toDeleted);
  }

  /** Modules deleted before `before` whose files are still there. */
  async deletedModules(tx: Tx, before: Date): Promise<Deleted[]> {
    const rows = await tx.query(
      `select m.id, m.name || '@' || m.number as name, sum(f.size_bytes) as size_bytes, array_agg(distinct f.sha256) as hashes
       from processing_modules m join processing_module_files f on f.module_id = m.id
       where m.deleted_at < $1 group by m.id order by m.deleted_at`,
      [before],
    );
    return rows.map(toDeleted);
  }

  async dropModuleFiles(tx: Tx, moduleId: string): Promise<void> {
    await tx.query('select 1 from processing_modules where id = $1 for update', [moduleId]);
    await tx.query('delete from processing_module_files where module_id = $1', [moduleId]);
  }

  /** Nothing refers to its bytes through this version any more. */
  async dropFiles(tx: Tx, versionId: string): Promise<void> {
    await tx.query('select 1 from versions where id = $1 for update', [versionId]);
    await tx.query('delete from version_files where version_id = $1', [versionId]);
  }

  /** Blobs older than `before` that no version or module refers to but, at most, these. */
  async looseBlobs(tx: Tx, before: Date, freed: readonly string[]): Promise<LooseBlob[]> {
    const rows = await tx.query(
      `select b.id, b.sha256, b.size_bytes from blobs b where b.created_at < $1 and not exists (
         select 1 from blob_references f where f.blob_id = b.id and f.holder_id <> all($2::uuid[])) order by b.size_bytes desc`,
      [before, freed],
    );
    return rows.map((row: { id: string; sha256: string; size_bytes: string }) => ({
      id: row.id,
      sha256: row.sha256,
      sizeBytes: Number(row.size_bytes),
    }));
  }

  async knownKeys(tx: Tx, keys: readonly string[]): Promise<Set<string>> {
    const rows: { key: string }[] = await tx.query('select object_key as key from blobs where object_key = any($1)', [
      keys,
    ]);
    return new Set(rows.map(({ key }) => key));
  }
}

const toDeleted = (row: { id: string; name: string; size_bytes: string; hashes: string[] }): Deleted => ({
  id: row.id,
  name: row.name,
  sizeBytes: Number(row.size_bytes),
  hashes: row.hashes,
});
