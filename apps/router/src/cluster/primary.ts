import cluster, { type Worker } from 'node:cluster';
import type { Logger, Stoppable } from '@perch/platform';
import { ControlSide } from '../control/control-side.ts';
import { CountBook } from '../count-book.ts';
import { EvidenceLedger } from '../evidence-ledger.ts';
import { type MetricFamily, mergeSnapshots } from '../metrics/snapshot.ts';
import type { RouterConfig } from '../router.config.ts';
import type { WorkerState } from '../serving/serving-tables.ts';
import { EvidenceRound } from './evidence-round.ts';
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

/** Its last words may arrive after it ended: only then is it gone. */
function onceGone(worker: Worker, then: (code: number | null, signal: NodeJS.Signals | null) => void): void {
  const look = () => {
    if (!worker.isDead() || worker.isConnected()) return;
    worker.off('exit', look);
    worker.off('disconnect', look);
    then(worker.process.exitCode, worker.process.signalCode);
  };
  worker.on('exit', look);
  worker.on('disconnect', look);
}

/** The first process of a router with several workers: follows the control plane and keeps the workers running, serves nothing. */
export class RouterPrimary implements Stoppable {
  private readonly config: RouterConfig;
  private readonly logger: Logger;
  private readonly control: ControlSide;
  private readonly states = new Map<number, WorkerState>();
  private readonly counts = new Map<number, Count>();
  /** What each worker counted at the last scrape, and what ended ones had counted by then: counters never go back. */
  private readonly counted = new Map<number, MetricFamily[]>();
  private past: MetricFamily[] = [];
  private readonly book = new CountBook();
  private readonly evidence = new EvidenceLedger();
  private readonly evidenceRound = new EvidenceRound();
  /** When the last accepted report left, by `monotonicMs`. */
  private acceptedAtMs: number | undefined;
  private nextCount = 1;
  private stopping = false;

  constructor(config: RouterConfig, logger: Logger) {
    this.config = config;
    this.logger = logger;
    const deliver = async () => this.tellAll({ kind: 'table' });
    const reported = {
      states: () => [...this.states.values()],
      counts: this.book,
      collect: () => undefined,
      evidence: this.evidence,
      gather: () => this.gather(),
      accepted: (atMs: number) => this.accepted(atMs),
    };
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
        if (message.kind === 'listening') {
          this.greet(worker);
          resolve(message.address);
        } else this.hear(worker, message);
      });
      worker.on('error', (error) => this.logger.error('worker failed', { error }));
      onceGone(worker, (code, signal) => {
        this.states.delete(worker.id);
        this.evidenceRound.answered(worker.id);
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

  /** What it was told before it listened it may not have heard. */
  private greet(worker: Worker): void {
    const { acceptedAtMs: atMs } = this;
    if (this.stopping) worker.send({ kind: 'stop' } satisfies ToWorker);
    else if (atMs !== undefined) worker.send({ kind: 'accepted', atMs } satisfies ToWorker);
  }

  private hear(worker: Worker, message: FromWorker): void {
    if (message.kind === 'state') {
      this.states.set(worker.id, message.state);
      this.control.reportSoon();
    }
    if (message.kind === 'evidence') {
      this.evidence.hear(worker.id, message.evidence, performance.now());
      this.evidenceRound.answered(worker.id, message.id);
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

  /** Every worker's evidence as of now, so that what a kill of all takes away is one report interval and no more. */
  private gather(): Promise<void> {
    const asked = this.workers().filter((worker) => worker.isConnected());
    return this.evidenceRound.ask(
      asked.map(({ id }) => id),
      (id) => this.tellAll({ kind: 'evidence', id }),
    );
  }

  private accepted(atMs: number): void {
    this.acceptedAtMs = atMs;
    this.tellAll({ kind: 'accepted', atMs });
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
      if (worker.isDead() && !worker.isConnected()) return resolve();
      const limit = setTimeout(() => worker.process.kill('SIGKILL'), stopLimitMs + this.config.stopDelayMs);
      onceGone(worker, () => {
        clearTimeout(limit);
        resolve();
      });
      if (worker.isConnected()) worker.send({ kind: 'stop' } satisfies ToWorker);
      else worker.process.kill('SIGTERM');
    });
  }
}
