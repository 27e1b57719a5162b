import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Silence of servers is judged within seconds, that of routers within minutes: each has a watch of its own. */
export class WatchServers1790000000830 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query('alter table installation add column servers_watched_since timestamptz not null default now()');
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('alter table installation drop column servers_watched_since');
  }
}
