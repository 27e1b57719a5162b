import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `alter table servers add column facts jsonb, add column usage jsonb, add column device text not null default 'cpu'`,
  `create table server_drains (
    server_id uuid primary key references servers on delete cascade,
    since timestamptz not null default now(),
    by_name text not null,
    reason text not null,
    forced boolean not null default false
  )`,
  `create table server_loads (
    server_id uuid primary key references servers on delete cascade,
    models integer not null default 0,
    moving integer not null default 0,
    ram_bytes bigint not null default 0,
    gpu_bytes bigint not null default 0
  )`,
  'insert into server_loads (server_id) select id from servers',
  'alter table server_models add column memory jsonb',

  `alter table triton_models add column guess_bytes bigint not null default 0, add column on_gpu boolean not null default true`,
  `update triton_models set
     guess_bytes = coalesce((select ceil(sum((f ->> 'size')::bigint) * 1.5) from jsonb_array_elements(body -> 'files') f), 0),
     on_gpu = jsonb_array_length(body #> '{engine,instances}') = 0
       or exists (select 1 from jsonb_array_elements(body #> '{engine,instances}') i where i ->> 'kind' <> 'cpu')`,
  `create table model_memory (
    digest text not null,
    device text not null,
    ram_bytes bigint not null,
    gpu_bytes bigint not null,
    measured_at timestamptz not null default now(),
    primary key (digest, device)
  )`,
  `create table variant_failures (
    server_id uuid not null references servers on delete cascade,
    triton_model text not null,
    reason text not null,
    failed_at timestamptz not null default now(),
    primary key (server_id, triton_model)
  )`,

  `alter table placements add column yields boolean not null default false, add column waits text,
     add column earlier jsonb not null default '[]', add column placed_at timestamptz not null default now()`,
  'update placements set placed_at = created_at',
  `create table placement_needs (
    deployment_id uuid not null,
    server_id uuid not null,
    name text not null,
    triton_model text not null references triton_models,
    used_model text,
    primary key (deployment_id, server_id, name),
    foreign key (deployment_id, server_id) references placements on delete cascade
  )`,
  'create index placement_needs_server on placement_needs (server_id, triton_model)',
  `create table dropped_models (
    server_id uuid not null references servers on delete cascade,
    name text not null,
    primary key (server_id, name)
  )`,
];

/** What servers are and have room for, what models take, what must lie beside them, and who is taken out of service. */
export class AddCapacity1790000000510 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(
      'drop table dropped_models, placement_needs, variant_failures, model_memory, server_loads, server_drains',
    );
    await db.query(
      'alter table placements drop column yields, drop column waits, drop column earlier, drop column placed_at',
    );
    await db.query('alter table triton_models drop column guess_bytes, drop column on_gpu');
    await db.query('alter table server_models drop column memory');
    await db.query('alter table servers drop column facts, drop column usage, drop column device');
  }
}
