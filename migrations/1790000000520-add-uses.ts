import type { MigrationInterface, QueryRunner } from 'typeorm';

const usesRule = `
  create function versions_uses_guard() returns trigger language plpgsql as $$
  begin
    if old.state <> 'uploading' and new.uses <> old.uses then
      raise exception 'what version % uses never changes after draft', old.id
        using errcode = 'check_violation', constraint = 'version_uses_never_change';
    end if;
    return new;
  end $$`;

const onlyOneUpload = (columns: string) =>
  `create unique index versions_one_upload_per_manifest on versions (${columns}) where state = 'uploading'`;

/** Other models that a version's code calls. The same bytes with other uses are another version. */
export class AddUses1790000000520 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`alter table versions add column uses jsonb not null default '{}'`);
    await db.query(`create index versions_with_uses on versions (model_id) where uses <> '{}'`);
    await db.query('drop index versions_one_upload_per_manifest');
    await db.query(onlyOneUpload('model_id, manifest_digest, uses'));
    await db.query(usesRule);
    await db.query(`create trigger versions_uses_guard before update of uses on versions
      for each row execute function versions_uses_guard()`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop trigger versions_uses_guard on versions');
    await db.query('drop function versions_uses_guard()');
    await db.query('drop index versions_one_upload_per_manifest');
    await db.query(`delete from versions v using versions w where v.state = 'uploading' and w.state = 'uploading'
      and v.model_id = w.model_id and v.manifest_digest = w.manifest_digest and v.number > w.number`);
    await db.query(onlyOneUpload('model_id, manifest_digest'));
    await db.query('drop index versions_with_uses');
    await db.query('alter table versions drop column uses');
  }
}
