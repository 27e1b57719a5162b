import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Addresses that are told of events; each keeps its own place in the outbox. */
export class AddWebhooks1790000000730 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      create table webhooks (
        id uuid primary key default gen_random_uuid(),
        name text not null unique,
        url text not null,
        events text[] not null,
        types text[] not null,
        secret text not null,
        created_at timestamptz(3) not null default now(),
        created_by text not null,
        begins_after bigint not null,
        done_to bigint not null,
        tries integer not null default 0,
        failures integer not null default 0,
        next_try_at timestamptz(3),
        last_error text,
        given_up integer not null default 0,
        last_given_up text
      )`);
    // Most events are told to nobody: the few that are must be found without reading past the others.
    await db.query(`
      create index outbox_told on outbox (id) where type in (
        'version.publish', 'version.tag', 'deployment.ready', 'deployment.failed', 'rollout.started', 'rollout.step',
        'rollout.waiting', 'rollout.held', 'rollout.promoted', 'rollout.rolled_back', 'rollout.aborted')`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop index outbox_told');
    await db.query('drop table webhooks');
    await db.query(`delete from work where kind = 'webhook'`);
  }
}
