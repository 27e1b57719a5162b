import { randomBytes } from 'node:crypto';
import { type DatabaseOptions, migrate } from '@perch/platform/database';
import pg from 'pg';
import { inject } from 'vitest';
import { migrations } from '../../migrations/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: columns of any query
type Row = Record<string, any>;

export interface TestDatabase extends DatabaseOptions {
  drop(): Promise<void>;
  query(sql: string, values?: unknown[]): Promise<Row[]>;
}

async function once(url: string, sql: string, values: unknown[] = []) {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined); // a server that is killed meanwhile is told by the query
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** A database of its own on the run's real Postgres, migrated unless told otherwise. */
export async function createTestDatabase(options: { migrated?: boolean } = {}): Promise<TestDatabase> {
  const server = inject('postgresUrl');
  const name = `t_${randomBytes(6).toString('hex')}`;
  await once(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const database = { url: url.toString(), migrations, poolSize: 5 };
  if (options.migrated !== false) await migrate(database);
  return {
    ...database,
    query: (sql, values) => once(database.url, sql, values),
    drop: async () => void (await once(server, `drop database if exists ${name} with (force)`)),
  };
}

/**
 * Copies the database as it is now; the function that comes back puts the copy in its place, as a restore from a backup
 * does while everybody runs: open connections are cut both times.
 */
export async function snapshotDatabase(database: TestDatabase): Promise<() => Promise<void>> {
  const server = inject('postgresUrl');
  const name = new URL(database.url).pathname.slice(1);
  const copy = `${name}_copy`;
  const alone = async (sql: string) => {
    await once(server, `alter database ${name} with allow_connections false`);
    await once(server, 'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
    await once(server, sql);
  };
  await alone(`create database ${copy} template ${name}`);
  await once(server, `alter database ${name} with allow_connections true`);
  return async () => {
    await alone(`drop database ${name} with (force)`);
    await once(server, `alter database ${copy} rename to ${name}`);
  };
}
