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
