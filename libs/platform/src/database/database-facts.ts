import type { Tx } from './transactions.ts';

export interface DatabaseFacts {
  /** Postgres' own number: 150004 is 15.4. */
  serverVersion: number;
  /** Changes of the schema that this program knows and the database has not, and the other way round. */
  missingMigrations: string[];
  unknownMigrations: string[];
  /** The database's clock minus ours. */
  clockSkewMs: number;
  /** Work that failed again and again. */
  failingWork: { kind: string; key: string; attempts: number; lastError: string | null }[];
}

/** More tries in a row than a restart of anything explains. */
const manyAttempts = 5;
const mostFailing = 10;

/** What there is to know of a database that answers. `migrations`: the classes this program was built with. */
export async function readDatabaseFacts(tx: Tx, migrations: readonly { name: string }[]): Promise<DatabaseFacts> {
  const begun = Date.now();
  const [row] = await tx.query(
    `select current_setting('server_version_num')::integer as version, extract(epoch from clock_timestamp()) * 1000 as now`,
  );
  const ended = Date.now();
  const done: { name: string }[] = await tx.query('select name from migrations');
  const has = new Set(done.map(({ name }) => name));
  const knows = new Set(migrations.map(({ name }) => name));
  const failingWork = await tx.query(
    `select kind, key, attempts, last_error as "lastError" from work
     where attempts >= $1 and last_error is not null order by attempts desc limit $2`,
    [manyAttempts, mostFailing],
  );
  return {
    serverVersion: row.version,
    missingMigrations: [...knows].filter((name) => !has.has(name)),
    unknownMigrations: [...has].filter((name) => !knows.has(name)),
    clockSkewMs: Math.round(Number(row.now) - (begun + ended) / 2),
    failingWork,
  };
}
