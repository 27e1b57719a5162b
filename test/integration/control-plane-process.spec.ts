import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { migrateDown } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testCertificate, testCertificateKey } from '../support/certificate.ts';
import { adminKey, callAt } from '../support/control-plane.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

const main = join(import.meta.dirname, '../../apps/control-plane/dist/main.js');
let database: TestDatabase;
let folder: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  if (!existsSync(main)) throw new Error(`${main} is missing: run \`npm run build\` first`);
  database = await createTestDatabase({ migrated: false });
  folder = await mkdtemp(join(tmpdir(), 'perch-program-'));
});
afterAll(async () => {
  for (const child of children) if (child.exitCode === null) child.kill('SIGKILL');
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

const settings = (): Record<string, string> => ({
  PERCH_LISTEN: '127.0.0.1:0',
  PERCH_DATABASE_URL: database.url,
  PERCH_STORE_URL: pathToFileURL(join(folder, 'store')).href,
  PERCH_BOOTSTRAP_ADMIN_KEY: adminKey,
});

/** Runs it to its end. */
const runOnce = (args: string[], env: Record<string, string>) =>
  promisify(execFile)(process.execPath, [main, ...args], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );

/** Starts it and waits for the line that names its address. */
async function start(env: Record<string, string>) {
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const lines: Record<string, unknown>[] = [];
  const address = await new Promise<string>((done, fail) => {
    child.once('exit', (code) => fail(new Error(`ended with ${code}: ${JSON.stringify(lines)}`)));
    createInterface(child.stdout!).on('line', (text) => {
      const line = JSON.parse(text);
      lines.push(line);
      if (line.msg === 'listening') done(line.address);
    });
  });
  const ended = new Promise<number | null>((done) => child.once('exit', done));
  return { child, address, lines, ended };
}

describe('the control plane as a program', () => {
  it('migrates on demand, up and down and up again, and says what it did', async () => {
    const env = { PERCH_DATABASE_URL: database.url };
    const up = await runOnce(['migrate'], env);
    expect(up.stderr).toBe('');
    expect(JSON.parse(up.stdout)).toMatchObject({
      direction: 'up',
      migrated: expect.arrayContaining(['AddAccess1790000000400']),
    });
    expect(JSON.parse((await runOnce(['migrate'], env)).stdout)).toEqual({ direction: 'up', migrated: [] });
    const tables = () =>
      database.query(`select table_name from information_schema.tables where table_schema = 'public' order by 1`);
    const all = await tables();
    expect(JSON.parse((await runOnce(['migrate', '--down'], env)).stdout)).toEqual({ direction: 'down', migrated: [] });
    const left = () => database.query('select 1 from migrations');
    while ((await left()).length > 0) await migrateDown(database);
    expect((await tables()).map((row) => row['table_name'])).toEqual(['migrations']);
    const functions = await database.query(`select proname from pg_proc where pronamespace = 'public'::regnamespace`);
    expect(functions).toEqual([]);
    await runOnce(['migrate'], env);
    expect(await tables()).toEqual(all);
  }, 60_000);

  it('says in one line what is wrong with its settings, and ends with 2', async () => {
    const { code, stderr, stdout } = await runOnce([], { ...settings(), PERCH_STORE_URL: '/store', PERCH_LISTEN: 'x' });
    expect(code).toBe(2);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/PERCH_STORE_URL: wants .*PERCH_LISTEN|PERCH_LISTEN.*PERCH_STORE_URL: wants/);
    expect(stdout).toBe('');
    expect((await runOnce(['unknown'], settings())).code).toBe(2);
    expect((await runOnce(['migrate'], {})).stderr).toContain('PERCH_DATABASE_URL');
  });

  it('ends with 1 and words when its port is taken', async () => {
    const first = await start(settings());
    const { code, stderr } = await runOnce([], { ...settings(), PERCH_LISTEN: new URL(first.address).host });
    expect(code).toBe(1);
    expect(stderr).toContain('EADDRINUSE');
    first.child.kill('SIGTERM');
    expect(await first.ended).toBe(0);
  });

  it('starts twice at once on an empty database, serves, and stops with 0 on a signal', async () => {
    const empty = await createTestDatabase({ migrated: false });
    const both = await Promise.all([1, 2].map(() => start({ ...settings(), PERCH_DATABASE_URL: empty.url })));
    for (const program of both) {
      expect((await callAt(program.address)('GET', '/api/v1/whoami')).status).toBe(200);
      expect(program.lines.filter((line) => line['msg'] === 'listening')).toHaveLength(1);
    }
    const made = await callAt(both[0]!.address)('POST', '/api/v1/keys', { name: 'a', role: 'viewer' });
    const use = (at: number) =>
      callAt(both[at]!.address)('GET', '/api/v1/whoami', undefined, { key: made.body.secret });
    expect((await use(1)).status).toBe(200);
    await callAt(both[0]!.address)('DELETE', `/api/v1/keys/${made.body.id}`);
    await expect.poll(async () => (await use(1)).status, { timeout: 2_000 }).toBe(401); // told, long before it forgets
    for (const [index, signal] of (['SIGTERM', 'SIGINT'] as const).entries()) {
      both[index]!.child.kill(signal);
      expect(await both[index]!.ended).toBe(0);
    }
    await empty.drop();
  });

  it('keeps secrets out of its log', async () => {
    const program = await start({ ...settings(), PERCH_LOG_LEVEL: 'debug' });
    const made = await callAt(program.address)('POST', '/api/v1/keys?x=hidden-in-query', { name: 'a', role: 'viewer' });
    await callAt(program.address)('POST', '/api/v1/keys', '{"broken-body-text');
    program.child.kill('SIGTERM');
    await program.ended;
    const log = JSON.stringify(program.lines);
    expect(log).toContain('/api/v1/keys');
    for (const secret of [
      made.body.secret,
      adminKey,
      'hidden-in-query',
      'broken-body-text',
      new URL(database.url).password,
    ])
      expect(log).not.toContain(secret);
  });

  it('speaks TLS when it is given a certificate', async () => {
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    await Promise.all([writeFile(cert, testCertificate), writeFile(key, testCertificateKey)]);
    const program = await start({ ...settings(), PERCH_TLS_CERT: cert, PERCH_TLS_KEY: key });
    expect(program.address).toMatch(/^https:/);
    const status = await new Promise((done, fail) => {
      get(`${program.address}/health/live`, { ca: testCertificate }, (reply) => {
        reply.resume();
        done(reply.statusCode);
      }).on('error', fail);
    });
    expect(status).toBe(200);
    program.child.kill('SIGTERM');
    expect(await program.ended).toBe(0);
  });

  it('writes openapi.json without a database', async () => {
    const file = join(folder, 'openapi.json');
    expect((await runOnce(['openapi', file], {})).code).toBe(0);
    expect(JSON.parse(await readFile(file, 'utf8')).openapi).toBe('3.1.0');
  });
});
