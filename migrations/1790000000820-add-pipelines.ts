import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `create table pipelines (
    name text primary key,
    generation integer not null check (generation > 0),
    spec jsonb,
    members text[] not null,
    modules jsonb not null,
    routed_generation integer,
    updated_at timestamptz not null default now(),
    updated_by text not null
  )`,
  'create index pipelines_members on pipelines using gin (members) where spec is not null',
  `create table pipeline_generations (
    pipeline text not null references pipelines,
    generation integer not null,
    spec jsonb,
    actor text not null,
    reason text not null,
    created_at timestamptz not null default now(),
    primary key (pipeline, generation)
  )`,
];

/** Endpoints and modules behind and beside one another, under one name. */
export class AddPipelines1790000000820 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop table pipeline_generations, pipelines');
  }
}
