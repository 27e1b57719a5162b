import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = [
  `create table processing_module_names (
    name text primary key,
    next_number integer not null default 1 check (next_number >= 1)
  )`,
  `create table processing_modules (
    id uuid primary key,
    name text not null references processing_module_names (name),
    number integer check (number >= 1),
    digest text not null check (digest ~ '^[0-9a-f]{64}$'),
    facts jsonb not null,
    description text not null default '',
    created_by text not null,
    created_at timestamptz not null default now(),
    registered_at timestamptz,
    upload_expires_at timestamptz not null,
    deleted_at timestamptz,
    unique (name, number),
    constraint module_number_when_registered check ((number is null) = (registered_at is null))
  )`,
  `create unique index processing_modules_one_upload on processing_modules (name, digest) where number is null`,
  `create index processing_modules_by_task on processing_modules ((facts ->> 'task')) where deleted_at is null`,
  `create table processing_module_files (
    module_id uuid not null references processing_modules (id) on delete cascade,
    path text not null,
    sha256 text not null,
    size_bytes bigint not null,
    blob_id uuid not null,
    primary key (module_id, path),
    foreign key (blob_id, sha256, size_bytes) references blobs (id, sha256, size_bytes)
  )`,
  'create index processing_module_files_by_blob on processing_module_files (blob_id)',
  // One place that says who needs a blob: deletion and the collection of garbage ask it.
  `create view blob_references as
     select version_id as holder_id, path, sha256, size_bytes, blob_id from version_files
     union all select module_id, path, sha256, size_bytes, blob_id from processing_module_files`,
];

/** A registered module never changes but for being deleted, whoever writes. */
const moduleRules = `
  create function processing_modules_guard() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      if old.number is not null then
        raise exception 'module % is registered and cannot be deleted', old.id
          using errcode = 'check_violation', constraint = 'module_delete_only_uploading';
      end if;
      return old;
    end if;
    if new.name <> old.name or new.digest <> old.digest or new.facts <> old.facts
      or (old.number is not null and new.number is distinct from old.number) then
      raise exception 'name, number, digest and facts of module % never change', old.id
        using errcode = 'check_violation', constraint = 'module_never_changes';
    end if;
    if old.number is null and new.number is not null and (
      not exists (select 1 from processing_module_files where module_id = new.id)
      or exists (select 1 from processing_module_files f join blobs b on b.id = f.blob_id
                 where f.module_id = new.id and b.state <> 'verified')) then
      raise exception 'module % holds bytes that were not verified', old.id
        using errcode = 'check_violation', constraint = 'module_bytes_verified';
    end if;
    return new;
  end $$`;

const fileRules = `
  create function processing_module_files_guard() returns trigger language plpgsql as $$
  declare
    holder uuid := case when tg_op = 'DELETE' then old.module_id else new.module_id end;
    given integer;
    gone timestamptz;
  begin
    select number, deleted_at into given, gone from processing_modules where id = holder;
    if given is not null and not (tg_op = 'DELETE' and gone is not null) then
      raise exception 'files of module % never change after it was registered', holder
        using errcode = 'check_violation', constraint = 'module_files_never_change';
    end if;
    if tg_op <> 'DELETE' then -- the lock makes a deletion of the blob wait, so that it sees this reference
      perform 1 from blobs where id = new.blob_id and state <> 'deleting' for share;
      if not found then
        raise exception 'blob % is being deleted', new.blob_id
          using errcode = 'check_violation', constraint = 'module_files_blob_lives';
      end if;
    end if;
    return case when tg_op = 'DELETE' then old else new end;
  end $$`;

const blobRules = (references: string) => `
  create or replace function blobs_guard() returns trigger language plpgsql as $$
  begin
    if new.sha256 <> old.sha256 or new.size_bytes <> old.size_bytes or new.object_key <> old.object_key then
      raise exception 'identity of blob % never changes', old.id
        using errcode = 'check_violation', constraint = 'blob_identity_never_changes';
    end if;
    if new.state <> old.state and (old.state, new.state) not in (
      ('unverified', 'verified'), ('unverified', 'deleting'), ('verified', 'deleting')) then
      raise exception 'blob % cannot go from % to %', old.id, old.state, new.state
        using errcode = 'check_violation', constraint = 'blob_state_machine';
    end if;
    if new.state = 'deleting' and old.state <> 'deleting'
      and exists (select 1 from ${references} where blob_id = new.id) then
      raise exception 'blob % is in use', old.id using errcode = 'check_violation', constraint = 'blob_in_use';
    end if;
    return new;
  end $$`;

/** Processing modules: their numbers, facts and files; blobs know that modules need them too. */
export class AddModules1790000000800 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of [...tables, moduleRules, fileRules, blobRules('blob_references')])
      await db.query(statement);
    await db.query(`create trigger processing_modules_guard before update or delete on processing_modules
      for each row execute function processing_modules_guard()`);
    await db.query(`create trigger processing_module_files_guard before insert or update or delete
      on processing_module_files for each row execute function processing_module_files_guard()`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(blobRules('version_files'));
    await db.query('drop view blob_references');
    for (const table of ['processing_module_files', 'processing_modules', 'processing_module_names'])
      await db.query(`drop table ${table}`);
    for (const name of ['processing_modules_guard', 'processing_module_files_guard'])
      await db.query(`drop function ${name}()`);
  }
}
