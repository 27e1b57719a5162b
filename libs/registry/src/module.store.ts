import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { ManifestFile, ModuleFacts, ProcessingModuleRecord } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { IsNull, LessThan } from 'typeorm';
import { ModuleEntity } from './module.entity.ts';

export interface NewModule {
  name: string;
  digest: string;
  facts: ModuleFacts;
  description: string;
  createdBy: string;
  uploadExpiresAt: Date;
}

export interface ModuleSearch {
  task: string | undefined;
  /** A part of the name. */
  name: string | undefined;
  /** Name after which the page starts. */
  after: string | undefined;
  limit: number;
}

const columns = `m.name, m.number, m.digest, m.facts, m.description, m.created_by as "createdBy",
  m.registered_at as "registeredAt", coalesce((
    select jsonb_agg(jsonb_build_object('path', f.path, 'sha256', f.sha256, 'size', f.size_bytes) order by f.path)
    from processing_module_files f where f.module_id = m.id), '[]') as files`;
const living = 'm.number is not null and m.deleted_at is null';

/** The only SQL for processing modules and their files. */
@Injectable()
export class ModuleStore {
  /** The next number of a name, whose row is made when it is new and locked until the transaction ends. */
  async lockName(tx: Tx, name: string): Promise<number> {
    await tx.query('insert into processing_module_names (name) values ($1) on conflict do nothing', [name]);
    const [row] = await tx.query('select next_number from processing_module_names where name = $1 for update', [name]);
    return row.next_number;
  }

  async moveCounter(tx: Tx, name: string, nextNumber: number): Promise<void> {
    await tx.query('update processing_module_names set next_number = $2 where name = $1', [name, nextNumber]);
  }

  /** Without a number: the newest one. */
  async find(tx: Tx, name: string, number?: number): Promise<ProcessingModuleRecord | null> {
    const [row] = await tx.query(
      `select ${columns} from processing_modules m where ${living} and m.name = $1
       and ($2::integer is null or m.number = $2) order by m.number desc limit 1`,
      [name, number ?? null],
    );
    return row ? toRecord(row) : null;
  }

  /** The id of a registered one, held against other writers until the transaction ends. */
  async lock(tx: Tx, name: string, number: number): Promise<string | undefined> {
    const [row] = await tx.query(
      `select m.id from processing_modules m where ${living} and m.name = $1 and m.number = $2 for update`,
      [name, number],
    );
    return row?.id;
  }

  /** Newest first. */
  async numbersOf(tx: Tx, name: string): Promise<ProcessingModuleRecord[]> {
    const rows: ModuleRow[] = await tx.query(
      `select ${columns} from processing_modules m where ${living} and m.name = $1 order by m.number desc`,
      [name],
    );
    return rows.map(toRecord);
  }

  /** The newest one of each name, in order of the names; those whose newest one is of the task. */
  async search(tx: Tx, { task, name, after, limit }: ModuleSearch): Promise<ProcessingModuleRecord[]> {
    const rows: ModuleRow[] = await tx.query(
      `select ${columns} from processing_modules m where ${living}
         and m.number = (select max(number) from processing_modules n where n.name = m.name and n.deleted_at is null)
         and ($1::text is null or m.facts ->> 'task' = $1) and ($2::text is null or strpos(m.name, lower($2)) > 0)
         and ($3::text is null or m.name > $3) order by m.name limit $4`,
      [task ?? null, name ?? null, after ?? null, limit],
    );
    return rows.map(toRecord);
  }

  /** The upload of exactly this module that is under way. */
  async uploadOf(tx: Tx, name: string, digest: string): Promise<ModuleEntity | undefined> {
    const [row] = await tx.query(
      'select id from processing_modules where name = $1 and digest = $2 and number is null for update',
      [name, digest],
    );
    return row && tx.findOneByOrFail(ModuleEntity, { id: row.id });
  }

  /** Held until the transaction ends. */
  async byId(tx: Tx, id: string): Promise<ModuleEntity | null> {
    return tx.findOne(ModuleEntity, { where: { id }, lock: { mode: 'pessimistic_write' } });
  }

  async insert(
    tx: Tx,
    module: NewModule,
    files: readonly ManifestFile[],
    placed: ReadonlyMap<string, string>,
  ): Promise<string> {
    const id = randomUUID();
    await tx.insert(ModuleEntity, { id, ...module } as never);
    await tx.query(
      `insert into processing_module_files (module_id, path, sha256, size_bytes, blob_id)
       select $1, * from unnest($2::text[], $3::text[], $4::bigint[], $5::uuid[])`,
      [
        id,
        files.map(({ path }) => path),
        files.map(({ sha256 }) => sha256),
        files.map(({ size }) => size),
        files.map(({ sha256 }) => placed.get(sha256)),
      ],
    );
    return id;
  }

  async change(
    tx: Tx,
    id: string,
    change: Partial<Pick<ModuleEntity, 'number' | 'registeredAt' | 'uploadExpiresAt' | 'description' | 'createdBy'>>,
  ): Promise<void> {
    await tx.update(ModuleEntity, { id }, change);
  }

  /** Uploads whose time was over at `before`. */
  async abandoned(tx: Tx, before: Date, limit: number): Promise<ModuleEntity[]> {
    return tx.find(ModuleEntity, {
      where: { number: IsNull(), uploadExpiresAt: LessThan(before) },
      order: { uploadExpiresAt: 'ASC' },
      take: limit,
    });
  }

  /** False: it was registered, gone on with, or given up meanwhile. */
  async giveUp(tx: Tx, id: string, before: Date): Promise<boolean> {
    const [, count] = await tx.query(
      'delete from processing_modules where id = $1 and number is null and upload_expires_at < $2',
      [id, before],
    );
    return count === 1;
  }

  /** From now on it is not there for anybody; its files stay until garbage is collected. */
  async markDeleted(tx: Tx, id: string): Promise<void> {
    await tx.query('update processing_modules set deleted_at = now() where id = $1', [id]);
  }
}

type ModuleRow = Omit<ProcessingModuleRecord, 'createdAt'> & { registeredAt: Date };

const toRecord = ({ registeredAt, ...row }: ModuleRow): ProcessingModuleRecord => ({
  name: row.name,
  number: row.number,
  digest: row.digest,
  facts: row.facts,
  files: row.files,
  description: row.description,
  createdAt: registeredAt.toISOString(),
  createdBy: row.createdBy,
});
