import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Deleted versions keep their row, so that their number is never given again; only then may their files go. */
const versionFilesGuard = (deletedToo: boolean) => `
  create or replace function version_files_guard() returns trigger language plpgsql as $$
  declare
    holder uuid := case when tg_op = 'DELETE' then old.version_id else new.version_id end;
    held text := (select state from versions where id = holder);
  begin
    if held is not null and held <> 'uploading'${
      deletedToo
        ? `
      and not (tg_op = 'DELETE' and (select deleted_at from versions where id = holder) is not null)`
        : ''
    } then
      raise exception 'files of version % never change after draft', holder
        using errcode = 'check_violation', constraint = 'version_files_never_change';
    end if;
    if tg_op <> 'DELETE' then -- the lock makes a deletion of the blob wait, so that it sees this reference
      perform 1 from blobs where id = new.blob_id and state <> 'deleting' for share;
      if not found then
        raise exception 'blob % is being deleted', new.blob_id
          using errcode = 'check_violation', constraint = 'version_files_blob_lives';
      end if;
    end if;
    return case when tg_op = 'DELETE' then old else new end;
  end $$`;

const up = [
  'alter table models add column deleted_at timestamptz',
  'alter table versions add column deleted_at timestamptz',
  `create index versions_deleted on versions (deleted_at) where deleted_at is not null`,
  versionFilesGuard(true),
  'alter table triton_models add column described_at timestamptz not null default now()',
  // fillfactor: rows are rewritten every few seconds, in place as long as their page has room
  `create table router_stats (
    router_id uuid not null references routers on delete cascade,
    endpoint text not null,
    version integer not null,
    boot_id text not null,
    requests bigint not null,
    errors bigint not null,
    retries bigint not null,
    latency bigint[] not null,
    at timestamptz not null default now(),
    primary key (router_id, endpoint, version)
  ) with (fillfactor = 70)`,
  'create index router_stats_endpoint on router_stats (endpoint)',
  `create index audit_log_subject on audit_log (subject, id)`,
];

/** What routers counted by endpoint and version, and what was deleted but is still known. */
export class AddTruth1790000000530 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop index audit_log_subject');
    await db.query('drop table router_stats');
    await db.query(versionFilesGuard(false));
    await db.query('alter table triton_models drop column described_at');
    await db.query('alter table versions drop column deleted_at');
    await db.query('alter table models drop column deleted_at');
  }
}
