import { setMaxListeners } from 'node:events';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { AppError, errorCodeOf, innerMessage } from '@perch/contracts';
import { LOGGER, type Logger } from '../logger.ts';
import { type CounterMetric, type GaugeMetric, type HistogramMetric, Metrics } from '../metrics.ts';
import { backoffMs, pause } from '../timing.ts';
import { Wakeups } from './wakeup.source.ts';
import { type Claim, WorkStore, workChannel } from './work.store.ts';

/** `on-change`: look again when asked. `after`: look again by itself. A throw is tried again with back-off. */
export type Outcome = { again: 'on-change' } | { again: 'after'; ms: number };

export interface Loop {
  kind: string;
  /** Reads all state, compares, acts. The key says where to look, never what happened; doing it twice is harmless. */
  reconcile(key: string, signal: AbortSignal): Promise<Outcome>;
  /** Every key there is: all are looked at on this timer, so that a lost wake-up costs time and nothing else. */
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
  private readonly stopped = new AbortController();
  private readonly wakers = new Map<string, () => void>();
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

  onApplicationBootstrap(): void {
    if (this.loops.length === 0) return;
    this.wakeups.on(workChannel, (kind) => {
      for (const [name, wake] of this.wakers) if (kind === '*' || kind === name) wake();
    });
    setMaxListeners(0, this.stopped.signal); // one a loop and one a pass, not a leak
    this.running = this.loops.flatMap((loop) => [this.runLoop(loop), ...(loop.resync ? [this.runResync(loop)] : [])]);
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    for (const wake of this.wakers.values()) wake();
    await Promise.all(this.running);
  }

  private async runLoop(loop: Loop): Promise<void> {
    const active = new Set<Promise<void>>();
    const limit = loop.concurrency ?? 4;
    while (!this.stopped.signal.aborted) {
      const woken = this.nextWake(loop.kind);
      const claims = active.size < limit ? await this.claim(loop, limit - active.size) : [];
      for (const claim of claims) {
        const pass = this.runPass(loop, claim).finally(() => active.delete(pass));
        active.add(pass);
      }
      if (claims.length === 0)
        await Promise.race([woken, pause(await this.waitMs(loop), this.stopped.signal), ...active]);
    }
    await Promise.all(active);
  }

  private nextWake(kind: string): Promise<void> {
    return new Promise((resolve) => this.wakers.set(kind, resolve));
  }

  private async waitMs(loop: Loop): Promise<number> {
    const due = await this.work.nextDueMs([loop.kind]).catch(() => null);
    return Math.max(10, Math.min(pollMs, due ?? pollMs));
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
      await this.work.finish(claim, outcome.again === 'after' ? outcome.ms : null);
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
    const settled = terminal
      ? this.work.finish(claim, null)
      : this.work.fail(claim, innerMessage(error), backoffMs(claim.attempts, 200, 30_000));
    await settled.catch(() => undefined); // the database is away: the lease runs out and the key is claimed again
  }

  private async runResync(loop: Loop): Promise<void> {
    const resync = loop.resync!;
    while (!this.stopped.signal.aborted) {
      try {
        for (const key of await resync.keys()) await this.work.enqueue(null, loop.kind, key);
      } catch (error) {
        this.sayAway(loop, error);
      }
      await pause(resync.everyMs, this.stopped.signal);
    }
  }
}
