import { setMaxListeners } from 'node:events';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { AppError, errorCodeOf, innerMessage } from '@perch/contracts';
import { LOGGER, type Logger } from '../logger.ts';
import { type CounterMetric, type GaugeMetric, type HistogramMetric, Metrics } from '../metrics.ts';
import { backoffMs, pause } from '../timing.ts';
import { Wakeups } from './wakeup.source.ts';
import { WorkLane } from './work.lane.ts';
import { type Claim, WorkStore, workChannel } from './work.store.ts';

/** `on-change`: look again when asked. `after`: look again by itself. A throw is tried again with back-off. */
export type Outcome = { again: 'on-change' } | { again: 'after'; ms: number };

export interface Loop {
  kind: string;
  /** Reads all state, compares, acts. The key says where to look, never what happened; doing it twice is harmless. */
  reconcile(key: string, signal: AbortSignal): Promise<Outcome>;
  /** Every key there is, or the next part of them: a lost wake-up costs time and nothing else. */
  resync?: { everyMs: number; keys(): Promise<string[]> };
  /** Keys worked on at once in this process; default 4. */
  concurrency?: number;
}

const leaseMs = 5_000;
const pollMs = 1_000;

/** Runs registered loops on the leased queue: any number of processes may, without a leader. */
@Injectable()
export class LoopRunner implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly loops: Loop[] = [];
  private readonly lanes = new Map<string, WorkLane>();
  private readonly stopped = new AbortController();
  private running: Promise<void>[] = [];
  private away = false;
  private readonly runs: CounterMetric<'loop' | 'outcome'>;
  private readonly seconds: HistogramMetric<'loop'>;
  private readonly lastSuccess: GaugeMetric<'loop'>;

  constructor(
    private readonly work: WorkStore,
    private readonly wakeups: Wakeups,
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.runs = metrics.counter('perch_loop_runs_total', 'Passes of a control loop by outcome.', ['loop', 'outcome']);
    this.seconds = metrics.histogram('perch_loop_duration_seconds', 'Duration of one pass of a control loop.', [
      'loop',
    ]);
    this.lastSuccess = metrics.gauge('perch_loop_last_success_timestamp_seconds', 'When a pass last succeeded.', [
      'loop',
    ]);
  }

  register(loop: Loop): void {
    this.loops.push(loop);
  }

  /** What is registered here, for whoever shows how much waits. */
  get kinds(): string[] {
    return this.loops.map(({ kind }) => kind);
  }

  onApplicationBootstrap(): void {
    if (this.loops.length === 0) return;
    setMaxListeners(0, this.stopped.signal); // one a loop and one a pass, not a leak
    for (const loop of this.loops)
      this.lanes.set(
        loop.kind,
        new WorkLane({
          atOnce: loop.concurrency ?? 4,
          claim: (limit) => this.claim(loop, limit),
          release: (claims) => this.work.release(claims),
          keep: (claim) => this.work.renew(claim, leaseMs),
          keepAfterMs: leaseMs / 3,
          run: (claim) => this.runPass(loop, claim),
        }),
      );
    this.wakeups.on(workChannel, (kind) => {
      for (const [name, lane] of this.lanes) if (kind === '*' || kind === name) lane.wake();
    });
    const lanes = [...this.lanes.values()].map((lane) => lane.run(this.stopped.signal));
    const resyncs = this.loops.flatMap((loop) => (loop.resync ? [this.runResync(loop)] : []));
    this.running = [this.watchClock(), ...lanes, ...resyncs];
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await Promise.all(this.running);
  }

  /** One look a second for all kinds together: what is due was not told, or somebody died over it. */
  private async watchClock(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      const due = await this.work.due(this.kinds).catch(() => new Map<string, number>());
      for (const [kind, ms] of due) if (ms < pollMs) this.lanes.get(kind)?.wakeIn(ms);
      await pause(pollMs, this.stopped.signal);
    }
  }

  private async claim(loop: Loop, limit: number): Promise<Claim[]> {
    try {
      const claims = await this.work.claim(loop.kind, limit, leaseMs);
      this.away = false;
      return claims;
    } catch (error) {
      this.sayAway(loop, error);
      await pause(500, this.stopped.signal);
      return [];
    }
  }

  /** One line an outage, not two a second for each loop. */
  private sayAway(loop: Loop, error: unknown): void {
    if (!this.away) this.logger.warn('claiming work failed', { loop: loop.kind, error });
    this.away = true;
  }

  private async runPass(loop: Loop, claim: Claim): Promise<void> {
    const started = performance.now();
    const lost = new AbortController();
    const renewing = setInterval(() => {
      this.work.renew(claim, leaseMs).then(
        (held) => held || lost.abort(),
        () => undefined,
      );
    }, leaseMs / 3);
    try {
      const outcome = await loop.reconcile(claim.key, AbortSignal.any([lost.signal, this.stopped.signal]));
      const dueMs = await this.work.finish(claim, outcome.again === 'after' ? outcome.ms : null);
      if (dueMs !== null) this.lanes.get(loop.kind)?.wakeIn(dueMs);
      this.runs.add({ loop: loop.kind, outcome: 'ok' });
      this.lastSuccess.set({ loop: loop.kind }, Date.now() / 1000);
    } catch (error) {
      await this.failed(loop, claim, error);
    } finally {
      clearInterval(renewing);
      this.seconds.observe({ loop: loop.kind }, (performance.now() - started) / 1000);
    }
  }

  private async failed(loop: Loop, claim: Claim, error: unknown): Promise<void> {
    this.runs.add({ loop: loop.kind, outcome: errorCodeOf(error) });
    this.logger.warn('loop pass failed', { loop: loop.kind, key: claim.key, attempts: claim.attempts, error });
    const terminal = error instanceof AppError && error.terminal;
    const retryMs = backoffMs(claim.attempts, 200, 30_000);
    const settled = terminal
      ? this.work.finish(claim, null)
      : this.work.fail(claim, innerMessage(error), retryMs).then(() => retryMs);
    const dueMs = await settled.catch(() => null); // the database is away: the lease runs out and the key is claimed again
    if (dueMs !== null) this.lanes.get(loop.kind)?.wakeIn(dueMs);
  }

  private async runResync(loop: Loop): Promise<void> {
    const resync = loop.resync!;
    while (!this.stopped.signal.aborted) {
      try {
        await this.work.enqueueAll(null, loop.kind, await resync.keys());
      } catch (error) {
        this.sayAway(loop, error);
      }
      await pause(resync.everyMs, this.stopped.signal);
    }
  }
}
