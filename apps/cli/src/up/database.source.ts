import { setTimeout as pause } from 'node:timers/promises';
import type { ChildWords } from './child-program.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.source.ts';
import type { Watchdog } from './watchdog.source.ts';

/** The embedded PostgreSQL of one data folder, started again on the same port when it dies. */
export class Database {
  private running: EmbeddedPostgres | undefined;
  private stopping = false;
  private readonly pauseEnd = new AbortController();

  constructor(
    private readonly dataDir: string,
    readonly logFile: string,
    private readonly watchdog: Watchdog,
    private readonly words: ChildWords,
  ) {}

  get pid(): number | undefined {
    return this.running?.pid;
  }
  get port(): number {
    return this.running?.port ?? 0;
  }
  get place(): string {
    return this.running?.dataDir ?? this.dataDir;
  }

  /** Resolves to its URL. */
  async start(port?: number): Promise<string> {
    const running = await startEmbeddedPostgres({
      dataDir: this.dataDir,
      logFile: this.logFile,
      ...(port ? { port } : {}),
    });
    this.running = running;
    this.watchdog.watch(running.pid, 'INT');
    void running.ended.then(() => {
      this.watchdog.forget(running.pid);
      if (!this.stopping) void this.again(running.port);
    });
    return running.url;
  }

  /** After a SIGKILL its lock file may still be held by processes that are about to end, so one try is not enough. */
  private async again(port: number): Promise<void> {
    this.words.say(`PostgreSQL ended; starting it again (${this.logFile})`);
    for (let attempt = 1; !this.stopping; attempt += 1) {
      try {
        await this.start(port);
        this.words.say('PostgreSQL is back');
        return;
      } catch (error) {
        this.words.say(`PostgreSQL did not start: ${(error as Error).message}`);
        const delayMs = Math.min(10_000, 300 * 2 ** attempt);
        await pause(delayMs, undefined, { signal: this.pauseEnd.signal }).catch(() => undefined);
      }
    }
    // Stopped while it was starting.
    await this.running?.stop();
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.pauseEnd.abort();
    await this.running?.stop();
  }
}
