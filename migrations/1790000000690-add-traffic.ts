import type { MigrationInterface, QueryRunner } from 'typeorm';

// No foreign keys to endpoints: their rows are never deleted, and a check of the key would wait for the pass that holds
// the endpoint's row while that pass waits for the row here.
const up = [
  `create table endpoint_traffic (
    endpoint text primary key,
    wish jsonb not null,
    force jsonb not null,
    updated_at timestamptz not null default now()
  )`,
  `create table quarantine (
    endpoint text not null,
    digest text not null,
    source_digest text not null,
    version integer not null,
    reason text not null,
    rollout text,
    since timestamptz not null default now(),
    primary key (endpoint, digest)
  )`,
  'create index deployments_by_digest on deployments (endpoint, digest, created_at desc)',
];

/** Which deployments share the traffic of progressive endpoints, and what their rollouts refused. */
export class AddTraffic1790000000690 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop index deployments_by_digest');
    await db.query('drop table quarantine, endpoint_traffic');
  }
}
