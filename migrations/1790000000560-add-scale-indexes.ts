import type { MigrationInterface, QueryRunner } from 'typeorm';

const indexes = {
  /** What leaves is looked for at each acknowledgement of a router; little of what is placed does. */
  placements_leaving: `placements (endpoint) where state = 'leaving'`,
  placements_released: `placements (server_id) where state = 'released'`,
  placements_model: 'placements (triton_model)',
  /** Removals that nobody decided, and removed members that wait to be forgotten: looked for at each publication. */
  document_entries_unmeant: `document_entries (document_id) where unmeant <> '{}'`,
  document_entries_removed: 'document_entries (document_id, revision) where digest is null',
};

/** Indexes that keep the cost of one change from growing with the number of endpoints. */
export class AddScaleIndexes1790000000560 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const [name, on] of Object.entries(indexes)) await db.query(`create index ${name} on ${on}`);
  }

  async down(db: QueryRunner): Promise<void> {
    for (const name of Object.keys(indexes)) await db.query(`drop index ${name}`);
  }
}
