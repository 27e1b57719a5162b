import type { MigrationInterface, QueryRunner } from 'typeorm';

const rule = `
  create function versions_processing_guard() returns trigger language plpgsql as $$
  begin
    if old.state <> 'uploading' and new.processing is distinct from old.processing then
      raise exception 'the processing that version % carries never changes after draft', old.id
        using errcode = 'check_violation', constraint = 'version_processing_never_changes';
    end if;
    return new;
  end $$`;

const onlyOneUpload = (columns: string) =>
  `create unique index versions_one_upload_per_manifest on versions (${columns}) where state = 'uploading'`;

/** What endpoints run that do not say their own processing. The same bytes with another one are another version. */
export class AddVersionProcessing1790000000810 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query('alter table versions add column processing jsonb');
    await db.query('create index versions_with_processing on versions (model_id) where processing is not null');
    await db.query('drop index versions_one_upload_per_manifest');
    await db.query(onlyOneUpload(`model_id, manifest_digest, uses, coalesce(processing, 'null')`));
    await db.query(rule);
    await db.query(`create trigger versions_processing_guard before update of processing on versions
      for each row execute function versions_processing_guard()`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop trigger versions_processing_guard on versions');
    await db.query('drop function versions_processing_guard()');
    await db.query('drop index versions_one_upload_per_manifest');
    await db.query(`delete from versions v using versions w where v.state = 'uploading' and w.state = 'uploading'
      and v.model_id = w.model_id and v.manifest_digest = w.manifest_digest and v.uses = w.uses and v.number > w.number`);
    await db.query(onlyOneUpload('model_id, manifest_digest, uses'));
    await db.query('drop index versions_with_processing');
    await db.query('alter table versions drop column processing');
  }
}
