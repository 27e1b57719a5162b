import { AppError } from '@perch/contracts/plain';
import { withTimeout } from '@perch/platform/timing';
import { afterEnd, type BreakerState, closedForMs, freshBreaker } from './breaker.decide.ts';
import type { CellListener, CellPort } from './cell.port.ts';
import { type Binding, Cell, type CellOwner } from './cell.ts';
import { chooseCell, wantsMore } from './choice.decide.ts';
import { Job, nextVisitId } from './job.ts';
import type { PoolStats } from './pool-stats.ts';
import { loadWithin, settleEnded } from './settle.ts';
import { type CellEnd, culpritOf } from './verdict.decide.ts';

export interface PoolSettings {
  /** Cells of one module at most. */
  mostCells: number;
  /** Of buffers outside of the heap, in one cell. */
  offHeapMb: number;
  loadLimitMs: number;
  unloadLimitMs: number;
  /** A cell whose hook stands still for so long is ended; in no hook it may be longer: loading native code is no fault. */
  stuckLimitMs: number;
  silentLimitMs: number;
}

export interface PoolParts {
  label: string;
  kind: 'worker' | 'process';
  bundle: Uint8Array;
  stats: PoolStats;
  settings: PoolSettings;
  openPort(listener: CellListener): CellPort;
  tell(level: 'debug' | 'warn', what: string, fields: Record<string, unknown>): void;
}

const lookEveryMs = 1_000;
const mostRevivals = 3;

/** The cells of one module: starts them, gives them calls, and starts others where one ends. */
export class CellPool implements CellOwner {
  readonly label: string;
  readonly stats: PoolStats;
  private readonly parts: PoolParts;
  private readonly bindings = new Map<number, Binding>();
  private cells: Cell[] = [];
  private starting = 0;
  /** Calls that wait for a cell. */
  private waiting: Job[] = [];
  private breaker: BreakerState = freshBreaker;
  private readonly late = new Set<number>();
  private lastEnd = '';
  private lookedAtMs = 0;

  constructor(parts: PoolParts) {
    this.parts = parts;
    this.label = parts.label;
    this.stats = parts.stats;
  }

  get isIdle(): boolean {
    return this.bindings.size === 0;
  }

  /** Loads the module for one more binding. Rejects with what `load` threw, or when it takes too long. */
  async bind(binding: Binding): Promise<void> {
    this.bindings.set(binding.id, binding);
    try {
      if (this.cells.length === 0) await this.start();
      else await Promise.all(this.cells.map((cell) => this.load(cell, binding)));
    } catch (error) {
      this.bindings.delete(binding.id);
      if (this.isIdle) this.endAll();
      throw error;
    }
  }

  /** Resolves when `unload` has run in every cell, or had its time. Never rejects. */
  async unbind(id: number): Promise<void> {
    const { unloadLimitMs } = this.parts.settings;
    this.bindings.delete(id);
    const unloads = this.cells.map((cell) =>
      withTimeout(cell.unbind(id), unloadLimitMs, `module ${this.label}: unload`).catch((error: Error) =>
        this.parts.tell('warn', 'module not unloaded', { module: this.label, reason: error.message }),
      ),
    );
    await Promise.all(unloads);
    if (this.isIdle) this.endAll();
  }

  /** Answers what the hook did; rejects with what the client is to be told. */
  run(job: Job): Promise<unknown> {
    this.stats.calls += 1;
    this.send(job);
    return job.answer;
  }

  /** Looks after deadlines, memory and load; called every few milliseconds. */
  sweep(nowMs: number): void {
    const { label, parts } = this;
    for (const cell of [...this.cells]) cell.sweep(nowMs, parts.settings);
    if (this.waiting.some((job) => nowMs >= job.deadlineAtMs)) {
      const late = this.waiting.filter((job) => nowMs >= job.deadlineAtMs);
      this.waiting = this.waiting.filter((job) => nowMs < job.deadlineAtMs);
      for (const job of late) job.reject(job.timeout(label, `found no ${parts.kind} within`));
    }
    if (nowMs - this.lookedAtMs < lookEveryMs) return;
    this.lookedAtMs = nowMs;
    this.look(nowMs);
  }

  ended(cell: Cell, end: CellEnd): void {
    const wanted = this.cells.includes(cell);
    this.cells = this.cells.filter((one) => one !== cell);
    const nowMs = performance.now();
    if (wanted) this.noteEnd(cell, end, nowMs);
    settleEnded(this.label, cell, end, (job, tries) => this.again(job, tries));
    this.refuseWaiting(nowMs);
    if (!this.isIdle && this.cells.length === 0) this.startSoon();
  }

  printed(text: string): void {
    this.parts.tell('debug', 'module wrote', { module: this.label, text: text.slice(0, 2_000) });
  }

  /** Ends every cell; calls in them fail, and no other is started. */
  endAll(): void {
    const { cells } = this;
    this.bindings.clear();
    this.cells = [];
    for (const cell of cells) cell.end('the module was unloaded');
  }

  figures(): { cells: number; queued: number; offHeapBytes: number } {
    let queued = this.waiting.length;
    let offHeapBytes = 0;
    for (const cell of this.cells) {
      queued += cell.jobs.size;
      offHeapBytes += cell.offHeapBytes;
    }
    return { cells: this.cells.length, queued, offHeapBytes };
  }

  private send(job: Job): void {
    const { visit } = job;
    if (visit.cell && !visit.cell.over) visit.cell.run(job);
    else if (job.hook === 'preprocess') this.place(job);
    else this.revive(job);
  }

  /** Gives a visit its cell: the one with the least to do, or the first to be ready. */
  private place(job: Job): void {
    const able = this.cells.filter((cell) => !cell.over && cell.bound.has(job.visit.binding));
    const nowMs = performance.now();
    const place = able.length === 1 ? 0 : chooseCell(able.map((cell) => loadOf(cell, nowMs)));
    const cell = able[place];
    if (cell) {
      job.visit.cell = cell;
      job.visit.id = nextVisitId();
      cell.run(job);
      return;
    }
    const binding = this.bindings.get(job.visit.binding);
    if (!binding) {
      job.reject(new AppError('unavailable', `module ${this.label} is being unloaded`, { retryAfterMs: 1_000 }));
      return;
    }
    this.waiting.push(job);
    const other = this.cells.find((one) => !one.over);
    if (other) this.loadLate(other, binding);
    else if (closedForMs(this.breaker, nowMs) > 0) this.refuseWaiting(nowMs);
    else this.startSoon();
  }

  /** What the visit carried went with its cell: `preprocess` is run again in another one. */
  private revive(job: Job): void {
    const { visit, ctx } = job;
    job.revivals += 1;
    if (job.revivals > mostRevivals) {
      job.reject(new AppError('module', `module ${this.label}: its ${this.parts.kind} ended before ${job.hook} was done: ${this.lastEnd}`)); // biome-ignore format: one sentence
      return;
    }
    const first = new Job({
      hook: 'preprocess',
      visit,
      ctx,
      value: (out) => ({ as: 'bytes', place: out.place(visit.body) }),
    });
    first.tries = job.tries;
    this.place(first);
    first.answer.then(
      () => this.send(job),
      (error) => job.reject(error),
    );
  }

  private again(job: Job, tries: number): void {
    this.stats.again += 1;
    job.tries = tries;
    job.visit.cell = undefined;
    if (job.hook !== 'preprocess') this.revive(job);
    else this.place(job);
  }

  private startSoon(): void {
    if (this.starting > 0 || closedForMs(this.breaker, performance.now()) > 0) return;
    this.start().catch((error: Error) => {
      const nowMs = performance.now();
      this.lastEnd = error.message;
      this.breaker = afterEnd(this.breaker, nowMs);
      this.parts.tell('warn', 'worker of module not started', { module: this.label, reason: error.message });
      for (const job of this.waiting.splice(0)) job.reject(error);
    });
  }

  /** A binding that did not load when its cell was started: once more, while its calls wait. */
  private loadLate(cell: Cell, binding: Binding): void {
    if (this.late.has(binding.id)) return;
    this.late.add(binding.id);
    const mine = (job: Job) => job.visit.binding === binding.id;
    const settle = (error?: unknown) => {
      this.late.delete(binding.id);
      const jobs = this.waiting.filter(mine);
      this.waiting = this.waiting.filter((job) => !mine(job));
      for (const job of jobs)
        if (error) job.reject(error);
        else this.send(job);
    };
    this.load(cell, binding).then(() => settle(), settle);
  }

  private async start(): Promise<void> {
    this.starting += 1;
    const cell = new Cell(this, this.parts.bundle, this.parts.openPort);
    this.stats.starts += 1;
    const bindings = [...this.bindings.values()];
    const loads = await Promise.allSettled(bindings.map((binding) => this.load(cell, binding)));
    this.starting -= 1;
    const failed = loads.find((load) => load.status === 'rejected');
    // where some of several have loaded, the others fail alone
    if (failed && (cell.over || cell.bound.size === 0)) {
      cell.end('it did not start');
      throw failed.reason;
    }
    if (this.isIdle) return cell.end('the module was unloaded');
    this.cells.push(cell);
    for (const job of this.waiting.splice(0)) this.send(job);
  }

  private load(cell: Cell, binding: Binding): Promise<void> {
    return loadWithin(this.parts.settings.loadLimitMs, cell, binding);
  }

  private noteEnd(cell: Cell, end: CellEnd, nowMs: number): void {
    this.lastEnd = end.words;
    this.stats.ends += 1;
    this.breaker = afterEnd(this.breaker, nowMs);
    const job = cell.jobs.get(culpritOf(end) ?? 0);
    this.parts.tell('warn', 'worker of module ended', {
      module: this.label,
      reason: end.words,
      calls: cell.jobs.size,
      ...(job ? { hook: job.hook, endpoint: job.ctx.endpoint, requestId: job.ctx.requestId } : {}),
      againInMs: Math.round(closedForMs(this.breaker, nowMs)),
    });
  }

  /** No cell is started for a while: who waits is told so at once. */
  private refuseWaiting(nowMs: number): void {
    const forMs = closedForMs(this.breaker, nowMs);
    if (forMs === 0 || this.cells.length > 0 || this.starting > 0) return;
    const seconds = Math.ceil(forMs / 1_000);
    for (const job of this.waiting.splice(0))
      job.reject(
        new AppError(
          'unavailable',
          `module ${this.label}: its ${this.parts.kind} ends again and again (last: ${this.lastEnd}); it is tried again in ${seconds} s`,
          { retryAfterMs: forMs },
        ),
      );
    this.stats.refused += 1;
  }

  private look(nowMs: number): void {
    const { settings } = this.parts;
    const mostBytes = settings.offHeapMb * 1_048_576;
    for (const cell of [...this.cells]) {
      const heldMb = Math.round(cell.offHeapBytes / 1_048_576);
      if (cell.offHeapBytes > mostBytes)
        cell.end(`it held ${heldMb} MB of buffers, more than ${settings.offHeapMb} MB`);
      else cell.ping(nowMs);
    }
    const loads = this.cells.map((cell) => loadOf(cell, nowMs));
    if (this.starting === 0 && closedForMs(this.breaker, nowMs) === 0 && wantsMore(loads, settings.mostCells))
      this.startSoon();
  }
}

const loadOf = (cell: Cell, nowMs: number) => ({
  calls: cell.jobs.size,
  stuckMs: cell.stuckMs(nowMs),
  busyShare: cell.busyShare,
});
