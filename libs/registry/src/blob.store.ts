import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { blobKey, type ManifestFile } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { In } from 'typeorm';
import { BlobEntity } from './blob.entity.ts';

export type BlobWish = Pick<ManifestFile, 'sha256' | 'size'>;

const holders = [
  ['version_files', 'version_id'],
  ['processing_module_files', 'module_id'],
] as const;

/** The only SQL for blobs. Who refers to one holds its row `for share`; who deletes it, `for update` (design section 10). */
@Injectable()
export class BlobStore {
  /**
   * Verified blobs among these hashes, by hash, that some version in one of `projects` (undefined: any), or a module,
   * holds: only to them "already there" may be said. They cannot start to be deleted before the transaction ends.
   */
  async shareVerified(
    tx: Tx,
    hashes: readonly string[],
    projects: readonly string[] | undefined,
  ): Promise<Map<string, BlobEntity>> {
    const rows: { id: string }[] = await tx.query(
      `select b.id from blobs b where b.state = 'verified' and b.sha256 = any($1) and (exists (
         select 1 from version_files f join versions v on v.id = f.version_id join models m on m.id = v.model_id
         where f.blob_id = b.id and v.deleted_at is null and ($2::text[] is null or m.project = any($2)))
         or exists (select 1 from processing_module_files f join processing_modules m on m.id = f.module_id
           where f.blob_id = b.id and m.number is not null and m.deleted_at is null))
       order by b.id for share of b`,
      [hashes, projects ?? null],
    );
    const blobs = rows.length === 0 ? [] : await tx.findBy(BlobEntity, { id: In(rows.map((row) => row.id)) });
    return new Map(blobs.map((blob) => [blob.sha256, blob]));
  }

  /** Rows for bytes that are to be uploaded, each under a key never used before. */
  async insertUnverified(tx: Tx, wishes: readonly BlobWish[]): Promise<Map<string, string>> {
    const rows = wishes.map(({ sha256, size }) => ({ id: randomUUID(), sha256, size }));
    await tx.query(
      `insert into blobs (id, sha256, size_bytes, object_key)
       select * from unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[])`,
      [
        rows.map((row) => row.id),
        rows.map((row) => row.sha256),
        rows.map((row) => row.size),
        rows.map((row) => blobKey(row.sha256, row.id)),
      ],
    );
    return new Map(rows.map((row) => [row.sha256, row.id]));
  }

  /** Of a version or a module, by its id. */
  async ofHolder(tx: Tx, holderId: string): Promise<BlobEntity[]> {
    const rows: { blob_id: string }[] = await tx.query(
      'select distinct blob_id from blob_references where holder_id = $1',
      [holderId],
    );
    return tx.find(BlobEntity, { where: { id: In(rows.map((row) => row.blob_id)) }, order: { id: 'ASC' } });
  }

  /** Holds the blobs of a version or module against deletion; those that are no longer (or not yet) verified are answered. */
  async lockOfHolder(tx: Tx, holderId: string): Promise<BlobEntity[]> {
    await tx.query(
      `select id from blobs where id in (select blob_id from blob_references where holder_id = $1) order by id for share`,
      [holderId],
    );
    return (await this.ofHolder(tx, holderId)).filter((blob) => blob.state !== 'verified');
  }

  async markVerified(tx: Tx, ids: readonly string[]): Promise<void> {
    await tx.query(
      `update blobs set state = 'verified', multipart_id = null where id = any($1) and state = 'unverified'`,
      [ids],
    );
  }

  /** Remembers the store's multipart upload in place of `old`; false: another process was first and its upload is the one. */
  async keepMultipart(tx: Tx, id: string, old: string | null, multipartId: string): Promise<boolean> {
    const [, count] = await tx.query(
      'update blobs set multipart_id = $2 where id = $1 and multipart_id is not distinct from $3',
      [id, multipartId, old],
    );
    return count === 1;
  }

  /** Bytes that turned out wrong: the files of its version or module wait for an upload under a fresh key, the old object is to go. */
  async replace(tx: Tx, holderId: string, bad: BlobEntity): Promise<void> {
    const fresh = await this.insertUnverified(tx, [{ sha256: bad.sha256, size: bad.sizeBytes }]);
    for (const [table, holder] of holders)
      await tx.query(`update ${table} set blob_id = $3 where ${holder} = $1 and blob_id = $2`, [
        holderId,
        bad.id,
        fresh.get(bad.sha256),
      ]);
  }

  async get(tx: Tx, id: string): Promise<BlobEntity> {
    return tx.findOneByOrFail(BlobEntity, { id });
  }

  /** One verified blob a hash, whoever holds it: for agents and routers, which are told hashes by us alone. */
  async verified(tx: Tx, hashes: readonly string[]): Promise<BlobEntity[]> {
    const found = await tx.findBy(BlobEntity, { sha256: In([...hashes]), state: 'verified' });
    return [...new Map(found.map((blob) => [blob.sha256, blob])).values()];
  }

  /** Ids of blobs that no version or module refers to, older than `before`; half-deleted ones too. */
  async loose(tx: Tx, before: Date, limit: number): Promise<string[]> {
    const rows: { id: string }[] = await tx.query(
      `select id from blobs b where created_at < $1
         and not exists (select 1 from blob_references where blob_id = b.id) order by id limit $2`,
      [before, limit],
    );
    return rows.map((row) => row.id);
  }

  /** From here on the blob counts as missing; undefined: somebody refers to it again, or it is gone. */
  async markDeleting(tx: Tx, id: string): Promise<BlobEntity | undefined> {
    const [held] = await tx.query('select id from blobs where id = $1 for update', [id]);
    // a statement of its own: it sees references committed while the lock was waited for
    const [used] = await tx.query('select 1 from blob_references where blob_id = $1 limit 1', [id]);
    if (!held || used) return undefined;
    await tx.query(`update blobs set state = 'deleting' where id = $1`, [id]);
    return this.get(tx, id);
  }

  async delete(tx: Tx, id: string): Promise<void> {
    await tx.delete(BlobEntity, { id, state: 'deleting' });
  }

  async knowsMultipart(tx: Tx, multipartId: string): Promise<boolean> {
    return tx.existsBy(BlobEntity, { multipartId });
  }
}
