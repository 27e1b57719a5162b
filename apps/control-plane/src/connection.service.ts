import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { JoinKeyService, KeyService } from '@perch/access';
import { AppError, innerMessage } from '@perch/contracts';
import { backoffMs, LOGGER, type Logger, pause } from '@perch/platform';
import { isConnectionLoss, migrate } from '@perch/platform/database';
import { DataSource } from 'typeorm';
import { CONFIG, type ControlPlaneConfig, databaseOptionsOf } from './control-plane.config.ts';

/**
 * Postgres is away or coming, the network is, the database is closed while a backup is put in its place, or the schema
 * waits for `perch migrate`: all of it passes by itself.
 */
function isPassing(error: unknown): boolean {
  const code = String((error as { code?: unknown })?.code ?? '');
  return (
    isConnectionLoss(error) ||
    ['ENOTFOUND', 'EHOSTUNREACH', '53300', '42P01'].includes(code) ||
    /timeout/i.test(innerMessage(error))
  );
}

/** Opens the database when it is there: the program starts without it, says so, and goes on as soon as it comes. */
@Injectable()
export class ConnectionService implements BeforeApplicationShutdown {
  private readonly stopped = new AbortController();
  private running: Promise<void> | undefined;
  /** The program listens: from then on nothing ends it, because nobody would hear why. */
  private listening = false;
  private reason: string | undefined = 'the database has not been reached yet';

  constructor(
    private readonly source: DataSource,
    private readonly keys: KeyService,
    private readonly joinKeys: JoinKeyService,
    @Inject(CONFIG) private readonly config: ControlPlaneConfig,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /**
   * Resolves when the database is open, or after `patienceMs`; then it goes on trying, whatever is said. Throws what will
   * not pass by itself: a wrong password, a database that does not exist, a migration that fails.
   */
  async start(patienceMs: number): Promise<void> {
    let refused: unknown;
    this.running = this.openUntilDone().catch((error: unknown) => {
      refused = error;
    });
    const over = new AbortController();
    await Promise.race([this.running, pause(patienceMs, over.signal)]);
    over.abort();
    this.listening = true;
    if (refused)
      throw new AppError('unavailable', `the database cannot be used: ${innerMessage(refused)}`, { cause: refused });
  }

  /** For readiness: undefined when a query is answered. */
  async check(): Promise<string | undefined> {
    if (this.reason) return this.reason;
    await this.source.query('select 1');
    return undefined;
  }

  /** Throws `unavailable` until the database was reached once; later faults are those of the query that meets them. */
  requireOpen(): void {
    if (this.reason) throw new AppError('unavailable', 'the database is not ready; try again', { retryAfterMs: 1_000 });
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await this.running;
  }

  private async openUntilDone(): Promise<void> {
    for (let attempt = 1; !this.stopped.signal.aborted; attempt += 1) {
      try {
        await this.open();
        this.reason = undefined;
        return;
      } catch (error) {
        if (!isPassing(error)) {
          this.logger.error('the database cannot be used', { error });
          if (!this.listening) throw error;
        }
        this.reason = `the database is not ready: ${innerMessage(error)}`;
        this.logger.warn('waiting for the database', { attempt, reason: innerMessage(error) });
        await pause(backoffMs(attempt, 200, 5_000), this.stopped.signal);
      }
    }
  }

  private async open(): Promise<void> {
    if (this.config.PERCH_MIGRATE_ON_START) {
      const done = await migrate(databaseOptionsOf(this.config));
      if (done.length > 0) this.logger.info('schema migrated', { migrations: done });
    }
    if (!this.source.isInitialized) await this.source.initialize();
    const { PERCH_BOOTSTRAP_ADMIN_KEY, PERCH_BOOTSTRAP_JOIN_KEY_SERVER, PERCH_BOOTSTRAP_JOIN_KEY_ROUTER } = this.config;
    if (PERCH_BOOTSTRAP_ADMIN_KEY) await this.keys.bootstrap(PERCH_BOOTSTRAP_ADMIN_KEY);
    if (PERCH_BOOTSTRAP_JOIN_KEY_SERVER) await this.joinKeys.bootstrap('server', PERCH_BOOTSTRAP_JOIN_KEY_SERVER);
    if (PERCH_BOOTSTRAP_JOIN_KEY_ROUTER) await this.joinKeys.bootstrap('router', PERCH_BOOTSTRAP_JOIN_KEY_ROUTER);
  }
}
