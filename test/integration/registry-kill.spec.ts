import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Version, VersionUpload } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adminKey, callAt } from '../support/control-plane.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { fileOf, newBytes, send, sha256Of } from '../support/registry.ts';
import { Program } from '../support/stack.ts';

const mebibyte = 1024 ** 2;
const pause = (ms: number) => new Promise((next) => setTimeout(next, ms));

let database: TestDatabase;
let folder: string;
let program: Program;
beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'perch-kill-'));
  const env = {
    PERCH_LISTEN: '127.0.0.1:0',
    PERCH_DATABASE_URL: database.url,
    PERCH_STORE_URL: `file://${join(folder, 'store')}`,
    PERCH_BOOTSTRAP_ADMIN_KEY: adminKey,
  };
  program = await new Program('control-plane', 'control-plane', env, join(folder, 'log')).start();
});
afterAll(async () => {
  await program?.stop();
  await database?.drop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

const versions = '/api/v1/models/kill/m/versions';

/** A client that types the same command again until it is done: creates, sends what is missing, completes, publishes. */
async function uploadStubbornly(files: Record<string, Uint8Array>): Promise<Version> {
  const listed = Object.entries(files).map(([path, bytes]) => fileOf(path, bytes));
  const call = callAt(program.address);
  const deadline = Date.now() + 120_000;
  for (let last: unknown; ; ) {
    if (Date.now() > deadline)
      throw new Error(`not done after 2 min; last: ${JSON.stringify(last)} ${await program.tail()}`);
    try {
      const created = await call<VersionUpload>('POST', versions, { files: listed });
      last = created.body;
      if (created.status >= 300) continue;
      const sending = created.body.missing.map((blob) =>
        send(blob, files[listed.find((file) => file.sha256 === blob.sha256)!.path]!),
      );
      await Promise.all(sending);
      const at = `${versions}/${created.body.version.number}`;
      last = (await call('POST', `${at}/complete`)).body;
      const published = await call<Version>('POST', `${at}/publish`);
      last = published.body;
      if (published.status === 200) return published.body;
    } catch (error) {
      last = String(error);
    }
    await pause(50);
  }
}

describe('killed at any time', () => {
  it('the control plane and its database connections: every upload ends as one version of the right bytes', async () => {
    const saboteur = (async () => {
      for (let kill = 0; kill < 6; kill += 1) {
        await pause(150 + ((kill * 397) % 900)); // of running time: every step of an upload is met sooner or later
        if (kill % 2 === 0) await program.crash();
        else
          await database.query(
            'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
          );
      }
    })();
    const worlds = Array.from({ length: 4 }, () => ({
      'model.plan': newBytes(33 * mebibyte),
      'config.json': newBytes(500),
    }));
    const done: Version[] = [];
    for (const pair of [worlds.slice(0, 2), worlds.slice(2)])
      done.push(...(await Promise.all(pair.map(uploadStubbornly))));
    await saboteur;
    expect(new Set(done.map((version) => version.number)).size).toBe(worlds.length);
    const call = callAt(program.address);
    for (const [at, version] of done.entries()) {
      let files = await call('GET', `${versions}/${version.number}/files`);
      // the last kill may have met a connection that this request was given: it is told to come again
      for (const until = Date.now() + 30_000; files.status === 503 && Date.now() < until; await pause(50))
        files = await call('GET', `${versions}/${version.number}/files`);
      expect(files.status, JSON.stringify(files.body)).toBe(200);
      for (const { path, url } of files.body.items) {
        const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
        expect(sha256Of(bytes)).toBe(sha256Of(worlds[at]![path as 'config.json']));
      }
    }
    const rows = await database.query('select state, number from versions order by number');
    expect(rows.map((row) => row['state'])).toEqual(worlds.map(() => 'published'));
    const loose = await database.query(
      `select 1 from version_files f join blobs b on b.id = f.blob_id where b.state <> 'verified'`,
    );
    expect(loose).toEqual([]);
    const audit = await database.query(
      `select subject from audit_log where action = 'version.complete' order by subject`,
    );
    expect(audit.map((row) => row['subject'])).toEqual(rows.map((row) => `kill/m/${row['number']}`).sort());
  }, 300_000);
});
