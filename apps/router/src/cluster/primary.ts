import cluster, { type Worker } from 'node:cluster';
import type { Logger, Stoppable } from '@perch/platform';
import { ControlSide } from '../control/control-side.ts';
import { CountBook } from '../count-book.ts';
import { type MetricFamily, mergeSnapshots } from '../metrics/snapshot.ts';
import type { RouterConfig } from '../router.config.ts';
import type { WorkerState } from '../serving/serving-tables.ts';
import type { FromWorker, ToWorker } from './messages.ts';

const noTable: WorkerState = { lineage: null, revision: -1, inFlight: {}, problems: {}, held: false };
const countLimitMs = 1_000;
const forkAgainMs = 1_000;
const stopLimitMs = 28_000;

interface Count {
  waiting: Set<number>;
  snapshots: MetricFamily[][];
  done: () => void;
}

/** The first process of a router with several workers: follows the control plane and keeps the workers running, serves nothing. */
export class RouterPrimary implements Stoppable {
  private readonly config: RouterConfig;
  private readonly logger: Logger;
  private readonly control: ControlSide;
  private readonly states = new Map<number, WorkerState>();
  private readonly listening = new Set<number>();
  private readonly counts = new Map<number, Count>();
  /** What each worker counted at the last scrape, and what ended ones had counted by then: counters never go back. */
  private readonly counted = new Map<number, MetricFamily[]>();
  private past: MetricFamily[] = [];
  private readonly book = new CountBook();
  private nextCount = 1;
  private stopping = false;

  constructor(config: RouterConfig, logger: Logger) {
    this.config = config;
    this.logger = logger;
    const deliver = async () => this.tellAll({ kind: 'table' });
    const reported = { states: () => [...this.states.values()], counts: this.book, collect: () => undefined };
    this.control = new ControlSide(config, deliver, reported, logger);
  }

  /** Resolves when every worker listens. */
  async start(): Promise<void> {
    await this.control.start();
    const addresses = await Promise.all(Array.from({ length: this.config.workers }, () => this.fork()));
    this.logger.info('listening', { address: addresses[0], workers: this.config.workers });
  }

  async close(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.workers().map((worker) => this.stopWorker(worker)));
    await this.control.stop();
  }

  private workers(): Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }

  private tellAll(message: ToWorker): void {
    for (const worker of this.workers()) if (worker.isConnected()) worker.send(message);
  }

  private fork(): Promise<string> {
    const worker = cluster.fork();
    this.states.set(worker.id, noTable);
    return new Promise((resolve) => {
      worker.on('message', (message: FromWorker) => {
        if (message.kind !== 'listening') return this.hear(worker, message);
        this.listening.add(worker.id);
        resolve(message.address);
      });
      worker.on('error', (error) => this.logger.error('worker failed', { error }));
      worker.on('exit', (code, signal) => {
        this.states.delete(worker.id);
        this.listening.delete(worker.id);
        this.keepCounts(worker.id);
        this.book.gone(worker.id);
        if (this.stopping) return;
        this.logger.error('worker ended and is started again', { code, signal });
        setTimeout(() => {
          if (!this.stopping) void this.fork();
        }, forkAgainMs);
      });
    });
  }

  private hear(worker: Worker, message: FromWorker): void {
    if (message.kind === 'state') {
      this.states.set(worker.id, message.state);
      this.control.reportSoon();
    }
    if (message.kind === 'served') this.book.hear(worker.id, message.counts);
    if (message.kind === 'scrape') void this.answerScrape(worker, message.id);
    if (message.kind !== 'counted') return;
    this.counted.set(worker.id, message.families);
    const count = this.counts.get(message.id);
    if (!count) return;
    count.snapshots.push(message.families);
    count.waiting.delete(worker.id);
    if (count.waiting.size === 0) count.done();
  }

  private keepCounts(id: number): void {
    const last = this.counted.get(id) ?? [];
    this.counted.delete(id);
    this.past = mergeSnapshots([this.past, last.filter(({ type }) => type !== 'gauge')]);
  }

  private async answerScrape(worker: Worker, scrape: number): Promise<void> {
    const id = this.nextCount++;
    const snapshots: MetricFamily[][] = [this.past];
    await new Promise<void>((resolve) => {
      const limit = setTimeout(resolve, countLimitMs);
      const done = () => {
        clearTimeout(limit);
        resolve();
      };
      this.counts.set(id, { waiting: new Set(this.workers().map((one) => one.id)), snapshots, done });
      this.tellAll({ kind: 'count', id });
    });
    this.counts.delete(id);
    if (worker.isConnected()) worker.send({ kind: 'counts', id: scrape, snapshots } satisfies ToWorker);
  }

  private stopWorker(worker: Worker): Promise<void> {
    return new Promise((resolve) => {
      if (worker.isDead()) return resolve();
      const limit = setTimeout(() => worker.process.kill('SIGKILL'), stopLimitMs + this.config.stopDelayMs);
      worker.once('exit', () => {
        clearTimeout(limit);
        resolve();
      });
      // what is said to a worker that is still starting may be heard by nobody
      if (worker.isConnected() && this.listening.has(worker.id)) worker.send({ kind: 'stop' } satisfies ToWorker);
      else worker.process.kill('SIGTERM');
    });
  }
}
