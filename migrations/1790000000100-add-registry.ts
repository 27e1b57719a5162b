import type { MigrationInterface, QueryRunner } from 'typeorm';

const tables = [
  `create table models (
    id uuid primary key,
    project text not null,
    name text not null,
    next_number integer not null default 1 check (next_number >= 1),
    created_at timestamptz not null default now(),
    unique (project, name)
  )`,
  `create table versions (
    id uuid primary key,
    model_id uuid not null references models (id),
    number integer not null check (number >= 1),
    state text not null default 'uploading' check (state in ('uploading', 'draft', 'published', 'archived')),
    manifest_digest text not null check (manifest_digest ~ '^[0-9a-f]{64}$'),
    size_bytes bigint not null check (size_bytes >= 0),
    framework text,
    signature jsonb,
    tags text[] not null default '{}',
    description text not null default '',
    metadata jsonb not null default '{}',
    lineage jsonb not null default '{}',
    author text not null,
    created_at timestamptz not null default now(),
    completed_at timestamptz,
    published_at timestamptz,
    upload_expires_at timestamptz not null,
    unique (model_id, number),
    constraint version_complete_unless_uploading check ((state = 'uploading') = (completed_at is null)),
    constraint version_published_has_time check (state <> 'published' or published_at is not null)
  )`,
  `create unique index versions_one_upload_per_manifest on versions (model_id, manifest_digest) where state = 'uploading'`,
  `create index versions_stale_uploads on versions (upload_expires_at) where state = 'uploading'`,
  'create index versions_tags on versions using gin (tags)',
  'create index versions_metadata on versions using gin (metadata jsonb_path_ops)',
  `create table blobs (
    id uuid primary key,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    size_bytes bigint not null check (size_bytes >= 0),
    object_key text not null unique,
    state text not null default 'unverified' check (state in ('unverified', 'verified', 'deleting')),
    multipart_id text,
    created_at timestamptz not null default now(),
    unique (id, sha256, size_bytes)
  )`,
  'create index blobs_by_hash on blobs (sha256)',
  `create index blobs_deleting on blobs (id) where state = 'deleting'`,
  `create table version_files (
    version_id uuid not null references versions (id) on delete cascade,
    path text not null,
    sha256 text not null,
    size_bytes bigint not null,
    blob_id uuid not null,
    primary key (version_id, path),
    foreign key (blob_id, sha256, size_bytes) references blobs (id, sha256, size_bytes)
  )`,
  'create index version_files_by_blob on version_files (blob_id)',
  `create table signing_keys (
    name text primary key,
    secret text not null,
    created_at timestamptz not null default now()
  )`,
];

/** The same state machine as `version.decide.ts`; here it holds for every writer, also one with a SQL prompt. */
const versionRules = `
  create function versions_guard() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      if old.state <> 'uploading' then
        raise exception 'version % is % and cannot be deleted', old.id, old.state
          using errcode = 'check_violation', constraint = 'version_delete_only_uploading';
      end if;
      return old;
    end if;
    if new.model_id <> old.model_id or new.number <> old.number then
      raise exception 'number and model of version % never change', old.id
        using errcode = 'check_violation', constraint = 'version_number_never_changes';
    end if;
    if old.state <> 'uploading'
      and (new.manifest_digest <> old.manifest_digest or new.size_bytes <> old.size_bytes) then
      raise exception 'bytes of version % never change after draft', old.id
        using errcode = 'check_violation', constraint = 'version_bytes_never_change';
    end if;
    if new.state <> old.state and (old.state, new.state) not in (
      ('uploading', 'draft'), ('draft', 'published'), ('published', 'draft'),
      ('draft', 'archived'), ('published', 'archived'), ('archived', 'draft')) then
      raise exception 'version % cannot go from % to %', old.id, old.state, new.state
        using errcode = 'check_violation', constraint = 'version_state_machine';
    end if;
    if old.state = 'uploading' and new.state = 'draft' and (
      not exists (select 1 from version_files where version_id = new.id)
      or exists (select 1 from version_files f join blobs b on b.id = f.blob_id
                 where f.version_id = new.id and b.state <> 'verified')) then
      raise exception 'version % holds bytes that were not verified', old.id
        using errcode = 'check_violation', constraint = 'version_bytes_verified';
    end if;
    return new;
  end $$`;

const fileRules = `
  create function version_files_guard() returns trigger language plpgsql as $$
  declare
    holder uuid := case when tg_op = 'DELETE' then old.version_id else new.version_id end;
    held text := (select state from versions where id = holder);
  begin
    if held is not null and held <> 'uploading' then
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

const blobRules = `
  create function blobs_guard() returns trigger language plpgsql as $$
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
      and exists (select 1 from version_files where blob_id = new.id) then
      raise exception 'blob % is in use', old.id using errcode = 'check_violation', constraint = 'blob_in_use';
    end if;
    return new;
  end $$`;

/** Models, versions, their files and blobs. */
export class AddRegistry1790000000100 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of [...tables, versionRules, fileRules, blobRules]) await db.query(statement);
    await db.query(`create trigger versions_guard before update or delete on versions
      for each row execute function versions_guard()`);
    await db.query(`create trigger version_files_guard before insert or update or delete on version_files
      for each row execute function version_files_guard()`);
    await db.query('create trigger blobs_guard before update on blobs for each row execute function blobs_guard()');
  }

  async down(db: QueryRunner): Promise<void> {
    for (const table of ['signing_keys', 'version_files', 'blobs', 'versions', 'models'])
      await db.query(`drop table ${table}`);
    for (const name of ['versions_guard', 'version_files_guard', 'blobs_guard'])
      await db.query(`drop function ${name}()`);
  }
}
