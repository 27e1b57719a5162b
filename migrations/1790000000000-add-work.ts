import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The leased work queue of the control loops. */
export class AddWork1790000000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      create table work (
        kind text not null,
        key text not null,
        next_at timestamptz not null default now(),
        ticket uuid,
        again boolean not null default false,
        attempts integer not null default 0,
        last_error text,
        primary key (kind, key)
      )`);
    await db.query('create index work_due on work (kind, next_at)');
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop table work');
  }
}
