import { DataSource } from 'typeorm';
import type { DatabaseOptions } from './options.ts';

/** Any fixed number: all control planes that start at once take the same advisory lock. */
const migrationLock = 7_137_301;

/** Brings the schema up to date; safe to run from many processes at once. Returns the names of what was run. */
export async function migrate(options: DatabaseOptions): Promise<string[]> {
  const source = await openForMigrations(options);
  const lock = source.createQueryRunner();
  try {
    await lock.query('select pg_advisory_lock($1)', [migrationLock]);
    const done = await source.runMigrations({ transaction: 'each' });
    return done.map((migration) => migration.name);
  } finally {
    await lock.query('select pg_advisory_unlock($1)', [migrationLock]).catch(() => undefined);
    await lock.release();
    await source.destroy();
  }
}

/** Takes the newest migration back; returns what is left to take back. For `perch migrate --down` and tests. */
export async function migrateDown(options: DatabaseOptions): Promise<void> {
  const source = await openForMigrations(options);
  try {
    await source.undoLastMigration({ transaction: 'each' });
  } finally {
    await source.destroy();
  }
}

async function openForMigrations(options: DatabaseOptions): Promise<DataSource> {
  const source = new DataSource({
    type: 'postgres',
    url: options.url,
    schema: options.schema,
    migrations: options.migrations as never,
    poolSize: 2,
    connectTimeoutMS: 5_000,
    extra: options.schema ? { options: `-c search_path=${options.schema}` } : {},
  });
  return source.initialize();
}
