import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `create table splits (
    name text primary key,
    generation integer not null check (generation > 0),
    spec jsonb,
    members text[] not null,
    prefix text,
    routed_generation integer,
    updated_at timestamptz not null default now(),
    updated_by text not null
  )`,
  'create index splits_members on splits using gin (members) where spec is not null',
  `create table split_generations (
    split text not null references splits,
    generation integer not null,
    spec jsonb,
    actor text not null,
    reason text not null,
    created_at timestamptz not null default now(),
    primary key (split, generation)
  )`,
];

/** Names whose traffic goes to versions of endpoints, with their generations. */
export class AddSplits1790000000720 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop table split_generations, splits');
  }
}
