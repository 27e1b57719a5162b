import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `create table endpoints (
    name text primary key,
    generation integer not null check (generation > 0),
    spec jsonb,
    pool text generated always as (spec #>> '{fleet,pool}') stored,
    project text generated always as (spec #>> '{model,project}') stored,
    model text generated always as (spec #>> '{model,name}') stored,
    status jsonb not null,
    updated_at timestamptz not null default now(),
    updated_by text not null
  )`,
  'create index endpoints_model on endpoints (project, model)',
  'create index endpoints_pool on endpoints (pool)',
  `create table endpoint_generations (
    endpoint text not null references endpoints,
    generation integer not null,
    spec jsonb,
    actor text not null,
    reason text not null,
    created_at timestamptz not null default now(),
    primary key (endpoint, generation)
  )`,
  `create table deployments (
    id uuid primary key,
    endpoint text not null references endpoints,
    generation integer not null,
    project text not null,
    model text not null,
    version integer not null,
    digest text not null,
    source_digest text not null,
    triton_model text not null,
    body jsonb not null,
    state text not null check (state in ('pending', 'placing', 'loading', 'ready', 'draining', 'retired', 'failed')),
    reason text,
    since timestamptz not null default now(),
    created_at timestamptz not null default now()
  )`,
  `create unique index deployments_digest on deployments (endpoint, digest) where state <> 'retired'`,
  `create index deployments_live on deployments (endpoint) where state <> 'retired'`,
  `create table endpoint_routes (
    endpoint text primary key references endpoints,
    route jsonb not null,
    digest text not null
  )`,
];

/** Endpoints with their generations, deployments, and the route each endpoint wants in the routing table. */
export class AddEndpoints1790000000300 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop table endpoint_routes, deployments, endpoint_generations, endpoints');
  }
}
