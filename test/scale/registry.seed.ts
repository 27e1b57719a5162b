import { createHash } from 'node:crypto';
import type { VersionUpload } from '@perch/contracts';
import type pg from 'pg';
import { scaleModel } from '../support/onnx.ts';
import type { AdminClient } from './admin.client.ts';

export const project = 'scale';
const template = 'template';

/** Models are not what is measured: one is uploaded through the API, the others are copies of its rows. */
export const modelName = (index: number): string => `m-${String(index).padStart(5, '0')}`;
export const endpointName = (index: number): string => `e/${String(index).padStart(5, '0')}`;

export interface Seed {
  models: number;
  /** Versions that are published from the start. */
  published: number;
  /** Models that have one more version, as a draft that waits to be published. */
  drafts: readonly number[];
}

/** Fills the registry; every model has versions 1 to `published`, those named in `drafts` one more. */
export async function seedRegistry(admin: AdminClient, db: pg.Client, seed: Seed): Promise<void> {
  for (let number = 1; number <= seed.published + 1; number += 1) await upload(admin, number);
  await db.query(
    `insert into models (id, project, name, next_number)
     select gen_random_uuid(), $1, 'm-' || lpad(i::text, 5, '0'), $3 from generate_series(0, $2 - 1) i`,
    [project, seed.models, seed.published + 2],
  );
  for (let number = 1; number <= seed.published; number += 1) await copyVersion(db, number, null, true);
  await copyVersion(db, seed.published + 1, seed.drafts.map(modelName), false);
  await db.query('analyze');
}

async function upload(admin: AdminClient, number: number): Promise<void> {
  const bytes = Buffer.from(scaleModel(number));
  const file = { path: 'model.onnx', size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
  const created = await admin.must<VersionUpload>('POST', `/models/${project}/${template}/versions`, { files: [file] });
  for (const { url, headers } of created.missing) {
    const sent = await fetch(url!, { method: 'PUT', headers, body: bytes });
    if (!sent.ok) throw new Error(`PUT of the template: ${sent.status}`);
  }
  await admin.must('POST', `/models/${project}/${template}/versions/${number}/complete`);
}

/** One version of the template for every model, or for those named; the database's own rules are kept. */
async function copyVersion(
  db: pg.Client,
  number: number,
  names: readonly string[] | null,
  publish: boolean,
): Promise<void> {
  const of = `from versions v join models t on t.id = v.model_id and t.project = '${project}' and t.name = '${template}'`;
  await db.query(
    `insert into versions select (jsonb_populate_record(v, jsonb_build_object('id', gen_random_uuid(), 'model_id', m.id,
       'state', 'uploading', 'completed_at', null))).*
     ${of} cross join models m where v.number = $1 and m.project = $2 and m.id <> t.id and ($3::text[] is null or m.name = any($3))`,
    [number, project, names],
  );
  const copies = `select v.id from versions v join models m on m.id = v.model_id
    where v.state = 'uploading' and v.number = ${number} and m.project = '${project}' and m.name <> '${template}'`;
  await db.query(
    `insert into version_files select (jsonb_populate_record(f, jsonb_build_object('version_id', c.id))).*
     from version_files f cross join (${copies}) c where f.version_id = (select v.id ${of} where v.number = $1)`,
    [number],
  );
  await db.query(`update versions set state = 'draft', completed_at = now() where id in (${copies})`);
  if (!publish) return;
  await db.query(
    `update versions v set state = 'published', published_at = now() from models m
     where m.id = v.model_id and v.number = $1 and m.project = $2 and m.name <> '${template}'`,
    [number, project],
  );
}
