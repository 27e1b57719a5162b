import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../apps/cli/src/up/embedded-postgres.source.ts';
import { reservePorts } from './ports.ts';

// biome-ignore lint/suspicious/noExplicitAny: columns of any query
type Row = Record<string, any>;

/** A Postgres server of a test's own, which it may kill, freeze and set back in time. */
export class OwnPostgres {
  private server!: EmbeddedPostgres;
  private snapshots = 0;

  private constructor(
    private readonly folder: string,
    private readonly port: number,
  ) {}

  /** `folder` must be one that the server's user can reach. */
  static async start(folder: string): Promise<OwnPostgres> {
    const [port] = await reservePorts(1);
    const postgres = new OwnPostgres(folder, port!);
    await postgres.restart();
    return postgres;
  }

  get url(): string {
    return this.server.url;
  }
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Every process of the server at once; the data stay. */
  signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.server.pid, signal);
    } catch {
      // already gone
    }
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.server.ended;
  }

  /** A start right after a SIGKILL may find traces of the one before: it is tried again. */
  async restart(): Promise<void> {
    const deadline = Date.now() + 30_000;
    for (;;)
      try {
        this.server = await startEmbeddedPostgres({
          dataDir: join(this.folder, 'postgres'),
          logFile: join(this.folder, 'postgres.log'),
          port: this.port,
        });
        return;
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await new Promise((next) => setTimeout(next, 200));
      }
  }

  async stop(): Promise<void> {
    this.signal('SIGCONT');
    await this.server.stop();
    await rm(this.server.dataDir, { recursive: true, force: true });
  }

  query(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.ask(this.url, sql, values);
  }

  /**
   * Copies the database as it is now; the function that comes back puts the copy in its place. Both cut all connections;
   * both may be tried again when they fail in the middle, and the database is open whenever they have ended.
   */
  async snapshot(): Promise<() => Promise<void>> {
    this.snapshots += 1;
    const copy = `perch_copy_${this.snapshots}`;
    await this.closed(`create database ${copy} template perch`);
    return async () => {
      const names = (await this.admin('select datname from pg_database')).map(({ datname }) => datname);
      if (names.includes('perch') && names.includes(copy)) await this.closed('drop database perch with (force)');
      if (names.includes(copy)) await this.admin(`alter database ${copy} rename to perch`);
    };
  }

  /** Does something that nobody may be connected for. */
  private async closed(sql: string): Promise<void> {
    try {
      await this.admin('alter database perch with allow_connections false');
      for (let tried = 1; ; tried += 1)
        try {
          await this.admin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'perch'`);
          await this.admin(sql);
          return;
        } catch (error) {
          if (tried === 20) throw error; // sessions take a moment to end
          await new Promise((next) => setTimeout(next, 100));
        }
    } finally {
      await this.reopen();
    }
  }

  private async reopen(): Promise<void> {
    for (let tried = 1; tried <= 300; tried += 1)
      try {
        const [row] = await this.admin(`select 1 as there from pg_database where datname = 'perch'`);
        if (row) await this.admin('alter database perch with allow_connections true');
        return;
      } catch {
        await new Promise((next) => setTimeout(next, 200)); // the server itself may be away
      }
  }

  private admin(sql: string): Promise<Row[]> {
    const url = new URL(this.url);
    url.pathname = '/postgres';
    return this.ask(url.toString(), sql, []);
  }

  private async ask(url: string, sql: string, values: unknown[]): Promise<Row[]> {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 20_000 });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query(sql, values)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
