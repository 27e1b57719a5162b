import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Settings with a default that specs stored before did not have: written out, so that applying a file again is no change. */
export class FillSpecDefaults1790000000600 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`update endpoints set spec = jsonb_build_object('stopped', false) || jsonb_set(spec, '{fleet}',
        jsonb_build_object('minReplicas', 1) || (spec -> 'fleet'))
      where spec is not null and (not spec ? 'stopped' or not (spec -> 'fleet') ? 'minReplicas')`);
  }

  /** The release before ignores them where they are read, and refuses nothing that is stored. */
  async down(): Promise<void> {}
}
