import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Problem } from '@perch/contracts';
import { type Logger, silentLogger } from '@perch/platform';
import { readControlPlaneConfig } from '../../apps/control-plane/src/control-plane.config.ts';
import { type RunningControlPlane, startControlPlane } from '../../apps/control-plane/src/control-plane.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

export const adminKey = 'pk_test_admin_0123456789abcdef';
export const serverJoinKey = 'jk_test_server_0123456789abcdef';
export const routerJoinKey = 'jk_test_router_0123456789abcdef';

export interface TestAnswer<T> {
  status: number;
  headers: Headers;
  /** Parsed JSON; undefined for an empty body. */
  body: T & Partial<Problem>;
}

export interface TestControlPlane extends RunningControlPlane {
  database: TestDatabase;
  storeFolder: string;
  /** Sends JSON; `path` from the root (`/api/v1/…`). The bootstrap admin key unless `key` is given; '' = none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  call<T = any>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<TestAnswer<T>>;
  /** Stops the program, drops the database, removes the folder. */
  close(): Promise<void>;
}
export interface CallOptions {
  key?: string;
  headers?: Record<string, string>;
}

export interface TestControlPlaneOptions {
  /** Settings that differ from the test's own. */
  env?: Record<string, string>;
  logger?: Logger;
  /** Starts on this database instead of a fresh one, and leaves it there at the end. */
  database?: TestDatabase;
  storeFolder?: string;
  /** How long the start waits for Postgres before it listens without it. */
  patienceMs?: number;
}

/** The real control plane in this process, on a database of its own, a folder store and a free port. */
export async function startTestControlPlane(options: TestControlPlaneOptions = {}): Promise<TestControlPlane> {
  const database = options.database ?? (await createTestDatabase({ migrated: false }));
  const storeFolder = options.storeFolder ?? (await mkdtemp(join(tmpdir(), 'perch-store-')));
  const config = readControlPlaneConfig({
    PERCH_LISTEN: '127.0.0.1:0',
    PERCH_DATABASE_URL: database.url,
    PERCH_STORE_URL: pathToFileURL(storeFolder).href,
    PERCH_BOOTSTRAP_ADMIN_KEY: adminKey,
    PERCH_BOOTSTRAP_JOIN_KEY_SERVER: serverJoinKey,
    PERCH_BOOTSTRAP_JOIN_KEY_ROUTER: routerJoinKey,
    ...options.env,
  });
  const program = await startControlPlane(config, options.logger ?? silentLogger, options.patienceMs);
  const close = async () => {
    await program.close();
    if (!options.database) await database.drop();
    if (!options.storeFolder) await rm(storeFolder, { recursive: true, force: true });
  };
  return { ...program, database, storeFolder, close, call: callAt(program.address) };
}

export const callAt =
  (address: string) =>
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  async <T = any>(method: string, path: string, body?: unknown, { key = adminKey, headers = {} }: CallOptions = {}) => {
    const response = await fetch(`${address}${path}`, {
      method,
      headers: {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? undefined : JSON.parse(text)) as T & Partial<Problem>,
    };
  };
