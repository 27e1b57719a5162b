import type { MigrationInterface, QueryRunner } from 'typeorm';

const up = [
  `alter table servers
     add column mode text check (mode in ('adopt', 'explicit')),
     add column headers jsonb not null default '{}',
     add column problem text`,
  `create index endpoints_source on endpoints ((split_part(spec #>> '{model,source}', '/', 1)))
     where spec #>> '{model,source}' is not null`,
];

/** Tritons without an agent (`mode` null: it has one), and endpoints that are served by them. */
export class AddExternal1790000000540 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop index endpoints_source');
    await db.query('alter table servers drop column mode, drop column headers, drop column problem');
  }
}
