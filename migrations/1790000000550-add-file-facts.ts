import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What the files of a version told of themselves when its upload was completed; null: nothing, or an earlier release took it. */
export class AddFileFacts1790000000550 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query('alter table versions add column facts jsonb');
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('alter table versions drop column facts');
  }
}
