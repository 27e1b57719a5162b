import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { LOGGER, type Logger } from '../logger.ts';
import { backoffMs, pause } from '../timing.ts';
import { DATABASE_OPTIONS, type DatabaseOptions } from './options.ts';

type Listener = (payload: string) => void;

/**
 * LISTEN on one connection of its own. A notification only shortens a wait: whoever listens here has a timer as well,
 * and after a reconnect every listener is woken once (payload '*'), because notifications may have been missed.
 */
@Injectable()
export class Wakeups implements OnApplicationShutdown {
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly stopped = new AbortController();
  private client: pg.Client | undefined;
  private running: Promise<void> | undefined;

  constructor(
    @Inject(DATABASE_OPTIONS) private readonly options: DatabaseOptions,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Returns the function that stops listening. The channel name is an SQL identifier of our own, never user input. */
  on(channel: string, listener: Listener): () => void {
    const set = this.listeners.get(channel) ?? new Set();
    this.listeners.set(channel, set.add(listener));
    if (set.size === 1) void this.client?.query(`listen ${channel}`).catch(() => undefined);
    this.running ??= this.run();
    return () => void set.delete(listener);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await this.client?.end().catch(() => undefined);
    await this.running;
  }

  private async run(): Promise<void> {
    for (let attempt = 1; !this.stopped.signal.aborted; attempt += 1) {
      const started = Date.now();
      await this.listenOnce().catch((error) => {
        if (!this.stopped.signal.aborted) this.logger.warn('wake-up connection lost', { error });
      });
      if (Date.now() - started > 10_000) attempt = 1;
      await pause(backoffMs(attempt, 100, 5_000), this.stopped.signal);
    }
  }

  private async listenOnce(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.options.url,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    });
    const ended = new Promise<void>((resolve, reject) => {
      client.on('end', resolve);
      client.on('error', reject);
    });
    ended.catch(() => undefined);
    try {
      await client.connect();
      client.on('notification', ({ channel, payload }) => this.wake(channel, payload ?? ''));
      this.client = client;
      for (const channel of this.listeners.keys()) await client.query(`listen ${channel}`);
      for (const channel of this.listeners.keys()) this.wake(channel, '*');
      if (!this.stopped.signal.aborted) await ended;
    } finally {
      this.client = undefined;
      await client.end().catch(() => undefined);
    }
  }

  private wake(channel: string, payload: string): void {
    for (const listener of this.listeners.get(channel) ?? []) listener(payload);
  }
}
