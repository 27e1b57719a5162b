import { join } from 'node:path';
import { innerMessage } from '@perch/contracts';
import type { Logger, Stoppable } from '@perch/platform';
import { ControlClient } from '../control/control.client.ts';
import { tableFile } from '../control/control-side.ts';
import { FileStore } from '../control/file.store.ts';
import type { MetricFamily } from '../metrics/snapshot.ts';
import type { RouterConfig } from '../router.config.ts';
import { startServing } from '../serve-program.ts';
import { versionsAtOnce } from '../serving/count.source.ts';
import { Serving } from '../serving/serving.ts';
import { TableStore } from '../table/table.store.ts';
import type { FromWorker, ToWorker } from './messages.ts';

const stateEveryMs = 500;
const scrapeLimitMs = 2_000;

const tell = (message: FromWorker): void => {
  if (process.connected) process.send!(message);
};

/** One of several serving processes: takes its tables from disk, where the first process puts them. */
export class RouterWorker {
  private readonly serving: Serving;
  private readonly store: TableStore;
  private readonly config: RouterConfig;
  private readonly logger: Logger;
  private readonly scrapes = new Map<number, (snapshots: MetricFamily[][]) => void>();
  private stopping = false;
  private nextScrape = 1;
  private lastState = '';
  private timer: NodeJS.Timeout | undefined;
  private loading: Promise<void> = Promise.resolve();

  constructor(config: RouterConfig, logger: Logger) {
    const files = new FileStore(join(config.dataDir, 'files'), new ControlClient(config.controlUrl), logger);
    this.config = config;
    this.logger = logger;
    this.serving = new Serving(config.transport, files, logger, config.modules);
    this.store = new TableStore(tableFile(config.dataDir), { remember: true });
  }

  async start(): Promise<Stoppable> {
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      process.once(signal, () => {
        this.stopping = true;
      });
    process.on('message', (message: ToWorker) => this.hear(message));
    await this.load();
    const { config, logger, serving } = this;
    const control = {
      stop: async () => {
        clearInterval(this.timer);
        this.tellServed(Number.POSITIVE_INFINITY);
        await this.tellEvidence(0, true);
      },
    };
    const { app, address } = await startServing({ config, logger, serving, control, collect: () => this.scrape() });
    this.timer = setInterval(() => {
      this.tellState();
      this.tellServed();
    }, stateEveryMs);
    tell({ kind: 'listening', address });
    // told to end while it started, when nobody listened for that yet
    if (this.stopping) setImmediate(() => process.kill(process.pid, 'SIGTERM'));
    return app;
  }

  private hear(message: ToWorker): void {
    switch (message.kind) {
      case 'table':
        this.loading = this.loading.then(() => this.load());
        return;
      case 'evidence':
        void this.tellEvidence(message.id, false);
        return;
      case 'accepted':
        this.serving.lease.accepted(message.atMs);
        return;
      case 'stop':
        // Ctrl-C in a terminal reaches the workers too; a second signal would cut the answers in hand short
        if (!this.stopping) process.kill(process.pid, 'SIGTERM');
        return;
      case 'count':
        tell({ kind: 'counted', id: message.id, families: this.serving.snapshot() });
        return;
      case 'counts':
        this.scrapes.get(message.id)?.(message.snapshots);
    }
  }

  private async load(): Promise<void> {
    try {
      const effective = await this.store.load();
      if (effective) await this.serving.tables.apply(effective);
      this.tellState();
    } catch (error) {
      this.logger.error('table not read', { reason: innerMessage(error) });
    }
  }

  private tellState(): void {
    const state = this.serving.tables.state();
    const text = JSON.stringify(state);
    if (text === this.lastState) return;
    this.lastState = text;
    tell({ kind: 'state', state });
  }

  private tellServed(limit = versionsAtOnce): void {
    const counts = this.serving.counts.changed(limit);
    if (counts.length > 0) tell({ kind: 'served', counts });
  }

  /** Resolves when it is on its way: at its end the process waits for that. */
  private tellEvidence(id: number, last: boolean): Promise<void> {
    const evidence = this.serving.evidence.changed(performance.now(), last);
    return new Promise((resolve) => {
      if (!process.connected) return resolve();
      process.send!({ kind: 'evidence', id, evidence } satisfies FromWorker, undefined, undefined, () => resolve());
    });
  }

  /** Everybody's counts; only our own when the first process does not answer. */
  private scrape(): Promise<MetricFamily[][]> {
    const id = this.nextScrape++;
    return new Promise((resolve) => {
      const done = (snapshots: MetricFamily[][]) => {
        clearTimeout(limit);
        this.scrapes.delete(id);
        resolve(snapshots);
      };
      const limit = setTimeout(() => done([this.serving.snapshot()]), scrapeLimitMs);
      this.scrapes.set(id, done);
      tell({ kind: 'scrape', id });
    });
  }
}
