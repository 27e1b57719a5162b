import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AddRegistry1790000000100 } from '../../migrations/1790000000100-add-registry.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { fileOf, newBytes, publisher, startTestRegistry, type TestRegistry, upload } from '../support/registry.ts';

let test: TestRegistry;
beforeAll(async () => {
  test = await startTestRegistry();
});
afterAll(() => test?.close());

const states = ['uploading', 'draft', 'published', 'archived'] as const;
const allowed = new Set([
  'uploading>draft', 'draft>published', 'published>draft', 'draft>archived', 'published>archived', 'archived>draft',
]); // biome-ignore format: one row reads better

/** A version in this state, its bytes verified; answers its id. */
async function versionIn(state: (typeof states)[number]): Promise<string> {
  const name = `m${randomUUID()}`;
  const bytes = newBytes();
  if (state === 'uploading') {
    const { version } = await test.registry.createVersion(publisher, 'sql', name, { files: [fileOf('a', bytes)] });
    await test.database.query(`update blobs set state = 'verified' where sha256 = $1`, [fileOf('a', bytes).sha256]);
    return version.id;
  }
  const { id } = await upload(test, `sql/${name}`, { a: bytes });
  if (state === 'published') await test.registry.publish(publisher, 'sql', name, 1);
  if (state === 'archived') await test.registry.archive(publisher, 'sql', name, 1);
  return id;
}

describe('the database itself holds the rules, for a writer with a SQL prompt too', () => {
  it.each(states.flatMap((from) => states.filter((to) => to !== from).map((to) => [from, to] as const)))(
    'a version from %s to %s',
    async (from, to) => {
      const id = await versionIn(from);
      const times = to === 'uploading' ? 'completed_at = null' : 'completed_at = now(), published_at = now()';
      const move = test.database.query(`update versions set state = $2, ${times} where id = $1`, [id, to]);
      if (allowed.has(`${from}>${to}`)) await move;
      else await expect(move).rejects.toMatchObject({ constraint: 'version_state_machine' });
      const [row] = await test.database.query('select state from versions where id = $1', [id]);
      expect(row!['state']).toBe(allowed.has(`${from}>${to}`) ? to : from);
    },
  );

  const f = 'f'.repeat(64);
  it.each([
    ['another number', 'update versions set number = 7 where id = $1', 'version_number_never_changes'],
    ['another manifest', `update versions set manifest_digest = '${f}' where id = $1`, 'version_bytes_never_change'],
    ['another size', 'update versions set size_bytes = 1 where id = $1', 'version_bytes_never_change'],
    ['no version', 'delete from versions where id = $1', 'version_delete_only_uploading'],
    ['a file less', 'delete from version_files where version_id = $1', 'version_files_never_change'],
    ['a renamed file', `update version_files set path = 'b' where version_id = $1`, 'version_files_never_change'],
    [
      'a file more',
      `insert into version_files select version_id, 'b', sha256, size_bytes, blob_id from version_files where version_id = $1`,
      'version_files_never_change',
    ],
    [
      'its blob deleted',
      `update blobs set state = 'deleting' where id = (select blob_id from version_files where version_id = $1)`,
      'blob_in_use',
    ],
    [
      'its blob doubted',
      `update blobs set state = 'unverified' where id = (select blob_id from version_files where version_id = $1)`,
      'blob_state_machine',
    ],
    [
      'its blob elsewhere',
      `update blobs set object_key = 'x' where id = (select blob_id from version_files where version_id = $1)`,
      'blob_identity_never_changes',
    ],
    ['published without a time', `update versions set state = 'published' where id = $1`, 'version_published_has_time'],
  ])('a draft keeps its bytes: %s is refused', async (_case, sql, constraint) => {
    const id = await versionIn('draft');
    const before = await test.everything();
    await expect(test.database.query(sql, [id])).rejects.toMatchObject({ constraint });
    expect(await test.everything()).toEqual(before);
  });

  it('no draft without verified bytes, no file of a blob that goes, no two uploads of one manifest', async () => {
    const { version } = await test.registry.createVersion(publisher, 'sql', 'loose', {
      files: [fileOf('a', newBytes())],
    });
    const draft = `update versions set state = 'draft', completed_at = now() where id = $1`;
    await expect(test.database.query(draft, [version.id])).rejects.toMatchObject({
      constraint: 'version_bytes_verified',
    });
    const id = randomUUID();
    await test.database.query(
      `insert into blobs (id, sha256, size_bytes, object_key, state) values ($1, $2, 1, $3, 'deleting')`,
      [id, f, id],
    );
    const refer = `insert into version_files values ($1, 'b', $2, 1, $3)`;
    await expect(test.database.query(refer, [version.id, f, id])).rejects.toMatchObject({
      constraint: 'version_files_blob_lives',
    });
    const [row] = await test.database.query('select * from versions where id = $1', [version.id]);
    const twin = `insert into versions (id, model_id, number, manifest_digest, size_bytes, author, upload_expires_at)
      values ($1, $2, 99, $3, 1, 'x', now())`;
    await expect(
      test.database.query(twin, [randomUUID(), row!['model_id'], row!['manifest_digest']]),
    ).rejects.toMatchObject({ constraint: 'versions_one_upload_per_manifest' });
  });

  it('a blob that is about to be shared cannot start to be deleted', async () => {
    const { id } = await upload(test, 'sql/shared', { a: newBytes() });
    const [file] = await test.database.query('select * from version_files where version_id = $1', [id]);
    const holder = new pg.Client({ connectionString: test.database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query(`select id from blobs where id = $1 and state = 'verified' for share`, [file!['blob_id']]);
    const marking = test.database.query(
      `set lock_timeout = '200ms'; select id from blobs where id = '${file!['blob_id']}' for update`,
    );
    await expect(marking).rejects.toMatchObject({ code: '55P03' });
    await holder.query('rollback');
    await holder.end();
  });
});

describe('the migration', () => {
  it('goes up, down without a trace, and up again', async () => {
    const database = await createTestDatabase({ migrated: false });
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const runner = { query: (sql: string) => client.query(sql) } as never;
    const objects = async () => {
      const relations = await client.query(`select relname from pg_class where relnamespace = 'public'::regnamespace`);
      const functions = await client.query(`select proname from pg_proc where pronamespace = 'public'::regnamespace`);
      return [...relations.rows, ...functions.rows];
    };
    const migration = new AddRegistry1790000000100();
    await migration.up(runner);
    const first = await objects();
    expect(first.length).toBeGreaterThan(10);
    await migration.down(runner);
    expect(await objects()).toEqual([]);
    await migration.up(runner);
    expect((await objects()).length).toBe(first.length);
    await client.end();
    await database.drop();
  });
});
