import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../apps/cli/src/up/embedded-postgres.source.ts';
import { adminKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import type { TestDatabase } from '../support/postgres.ts';

let folder: string;
let postgres: EmbeddedPostgres;
let plane: TestControlPlane;

/** A killed server's children hold its memory for a moment, so the first tries may be refused. */
async function restartPostgres(): Promise<void> {
  await expect
    .poll(
      async () => {
        postgres = await startEmbeddedPostgres({
          dataDir: join(folder, 'data'),
          logFile: join(folder, 'log'),
          port: postgres.port,
        });
        return true;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-outage-'));
  await chmod(folder, 0o711);
  postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), logFile: join(folder, 'log') });
  await postgres.stop();
  const database = { url: postgres.url } as TestDatabase;
  plane = await startTestControlPlane({
    database,
    storeFolder: join(folder, 'store'),
    patienceMs: 100,
  });
});
afterAll(async () => {
  await plane?.close();
  await postgres?.stop();
  await rm(folder, { recursive: true, force: true });
});

const ask = (path: string) => plane.call('GET', path);

describe('a control plane whose Postgres comes and goes', () => {
  it('starts without it, lives, says that it is not ready, and answers what to do', async () => {
    expect((await ask('/health/live')).status).toBe(200);
    const ready = await ask('/health/ready');
    expect(ready.status).toBe(503);
    expect(JSON.stringify(ready.body)).toMatch(/database is not ready/);
    for (const path of ['/api/v1/whoami', '/api/v1/models/nlp/m/versions']) {
      const answer = await ask(path);
      expect([answer.status, answer.body.code]).toEqual([503, 'unavailable']);
      expect(answer.headers.get('retry-after')).toBe('1');
      expect(JSON.stringify(answer.body)).not.toContain(String(postgres.port));
    }
  });

  it('brings the schema up to date and serves as soon as Postgres is there', async () => {
    await restartPostgres();
    await expect.poll(async () => (await ask('/api/v1/whoami')).status, { timeout: 15_000 }).toBe(200);
    expect((await ask('/health/ready')).body).toMatchObject({ ready: true });
  });

  it('survives a Postgres that is killed: 503 meanwhile, then everything again, streams of events included', async () => {
    const response = await fetch(`${plane.address}/api/v1/events`, {
      headers: { authorization: `Bearer ${adminKey}` },
    });
    let streamed = '';
    const reading = (async () => {
      for await (const chunk of response.body!) streamed += Buffer.from(chunk).toString();
    })();
    reading.catch(() => undefined);

    process.kill(postgres.pid, 'SIGKILL');
    await postgres.ended;
    const seen = new Set<number>();
    await expect
      .poll(
        async () => {
          const { status } = await ask('/api/v1/models');
          seen.add(status);
          return status;
        },
        { timeout: 10_000 },
      )
      .toBe(503);
    expect((await plane.call('POST', '/api/v1/keys', { name: 'x', role: 'viewer' })).status).toBe(503);
    await restartPostgres();
    await expect
      .poll(
        async () => {
          const { status } = await ask('/api/v1/models');
          seen.add(status);
          return status;
        },
        { timeout: 15_000 },
      )
      .toBe(200);
    expect([...seen].filter((status) => status !== 200 && status !== 503)).toEqual([]);

    const made = await plane.call('POST', '/api/v1/keys', { name: 'after', role: 'viewer' });

    expect(made.status).toBe(201);
    await expect.poll(() => streamed, { timeout: 20_000 }).toContain(made.body.id);
    expect((await ask('/api/v1/audit/verify')).body).toMatchObject({ intact: true });
  });
});

describe('a database that a backup is put in place of while the program starts', () => {
  it('is waited for: closed at first, not there for a moment, then there', async () => {
    const server = new URL(postgres.url);
    server.pathname = '/postgres';
    const admin = new pg.Client({ connectionString: server.toString() });
    await admin.connect();
    await admin.query('create database restored allow_connections false');
    const url = new URL(postgres.url);
    url.pathname = '/restored';
    const database = { url: url.toString() } as TestDatabase;
    const own = await startTestControlPlane({ database, storeFolder: join(folder, 'store3'), patienceMs: 300 });
    const words = async () => JSON.stringify((await own.call('GET', '/health/ready')).body);
    await expect.poll(words, { timeout: 10_000 }).toContain('not currently accepting connections');
    await admin.query('drop database restored');
    await expect.poll(words, { timeout: 10_000 }).toContain('does not exist');
    await admin.query('create database restored');
    await expect.poll(async () => (await own.call('GET', '/api/v1/models')).status, { timeout: 20_000 }).toBe(200);
    await own.close();
    await admin.end();
  });
});

describe('a store that goes', () => {
  it('is told by readiness, and the rest goes on', async () => {
    await rename(join(folder, 'store'), join(folder, 'gone'));
    expect((await ask('/health/ready')).body).toMatchObject({
      ready: false,
      checks: { database: { up: true }, store: { up: false } },
    });
    expect((await ask('/api/v1/models')).status).toBe(200);
    await rename(join(folder, 'gone'), join(folder, 'store'));
    expect((await ask('/health/ready')).status).toBe(200);
  });
});

describe('an S3 store that is not there', () => {
  it('holds up no start, and is named by readiness and by what needs it', async () => {
    const own = await startTestControlPlane({
      database: { url: postgres.url } as TestDatabase,
      storeFolder: join(folder, 'unused'),
      env: {
        PERCH_STORE_URL: 's3://models/prefix',
        PERCH_S3_ENDPOINT: 'http://127.0.0.1:1',
        PERCH_S3_ACCESS_KEY_ID: 'nobody',
        PERCH_S3_SECRET_ACCESS_KEY: 'a-secret-of-s3',
      },
    });
    const ready = await own.call('GET', '/health/ready');
    expect(ready.body).toMatchObject({ ready: false, checks: { database: { up: true }, store: { up: false } } });
    expect((await own.call('GET', '/api/v1/models')).status).toBe(200);
    const file = { path: 'model.onnx', sha256: 'b'.repeat(64), size: 10 };
    const answer = await own.call('POST', '/api/v1/models/nlp/away/versions', { files: [file] });
    expect([answer.status, answer.body.code]).toEqual([503, 'unavailable']);
    expect(JSON.stringify([ready.body, answer.body])).not.toContain('a-secret-of-s3');
    await own.close();
  });
});

describe('a Postgres that accepts and then says nothing', () => {
  it('does not hang a start or a readiness check', async () => {
    const sockets = new Set<Socket>();
    const mute = createServer((socket) => void sockets.add(socket));
    await new Promise<void>((done) => mute.listen(0, '127.0.0.1', done));
    const { port } = mute.address() as { port: number };
    const database = { url: `postgres://u:p@127.0.0.1:${port}/x` } as TestDatabase;
    const own = await startTestControlPlane({ database, storeFolder: join(folder, 'store2'), patienceMs: 100 });
    const started = Date.now();
    expect((await own.call('GET', '/health/ready')).status).toBe(503);
    expect(Date.now() - started).toBeLessThan(4_000);
    for (const socket of sockets) socket.destroy();
    mute.close();
    await own.close();
  });
});

describe('what will not pass by itself', () => {
  it.each([
    ['a wrong password', 'password' as const, 'wrong', 'password authentication failed'],
    ['a database that is not there', 'pathname' as const, '/nothing', 'does not exist'],
  ])('%s ends the start with words', async (_name, part, value, words) => {
    const url = new URL(postgres.url);
    url[part] = value;
    const database = { url: url.toString() } as TestDatabase;
    const start = startTestControlPlane({ database, storeFolder: join(folder, 'store3'), patienceMs: 5_000 });
    await expect(start).rejects.toThrow(words);
    await expect(start).rejects.not.toThrow('wrong');
  });
});
