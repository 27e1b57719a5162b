import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `create table installation (
    only_one boolean primary key default true check (only_one),
    lineage uuid not null,
    confirmed boolean not null,
    past_lineages uuid[] not null default '{}',
    watching_since timestamptz not null default now(),
    last_sweep_at timestamptz not null default now()
  )`,
  `insert into installation (lineage, confirmed) values (gen_random_uuid(), true)`,

  `create table documents (
    id text primary key,
    revision bigint not null default 0,
    confirmed boolean not null default true,
    published_at timestamptz not null default now()
  )`,
  `create table document_entries (
    document_id text not null references documents on delete cascade,
    section text not null,
    key text not null,
    value jsonb,
    digest text,
    revision bigint not null,
    unmeant text[] not null default '{}',
    primary key (document_id, section, key),
    check ((value is null) = (digest is null))
  )`,
  'create index document_entries_revision on document_entries (document_id, revision)',
  `create table document_revisions (
    document_id text not null references documents on delete cascade,
    revision bigint not null,
    published_at timestamptz not null default now(),
    primary key (document_id, revision)
  )`,

  `create table servers (
    id uuid primary key,
    name text not null,
    pool text not null,
    labels jsonb not null default '{}',
    http text not null,
    grpc text not null,
    token_hash text not null unique,
    boot_id text,
    observed_hash text,
    observed jsonb,
    presence text not null default 'live' check (presence in ('live', 'silent', 'lost')),
    enrolled_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now()
  )`,
  'create index servers_pool on servers (pool)',
  `create table server_models (
    server_id uuid not null references servers on delete cascade,
    triton_model text not null,
    state text not null,
    reason text,
    since timestamptz not null,
    inputs jsonb,
    outputs jsonb,
    max_batch_size integer,
    primary key (server_id, triton_model)
  )`,
  'create table triton_models (name text primary key, digest text not null, body jsonb not null)',
  `create table placements (
    deployment_id uuid not null,
    server_id uuid not null references servers,
    endpoint text not null,
    triton_model text not null references triton_models,
    state text not null default 'active' check (state in ('active', 'leaving', 'released')),
    proved_at timestamptz,
    routed_revision bigint,
    unrouted_revision bigint,
    unrouted_at timestamptz,
    created_at timestamptz not null default now(),
    primary key (deployment_id, server_id)
  )`,
  'create index placements_server on placements (server_id, triton_model)',
  'create index placements_endpoint on placements (endpoint)',

  `create table routers (
    id uuid primary key,
    name text not null,
    token_hash text not null unique,
    boot_id text,
    report_hash text,
    report jsonb,
    enrolled_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now(),
    forgotten_at timestamptz
  )`,
];

/** Servers, routers, placements, and the documents that both follow. */
export class AddFleet1790000000200 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop table routers, placements, triton_models, server_models, servers');
    await db.query('drop table document_revisions, document_entries, documents, installation');
  }
}
