import { AppError } from '@perch/contracts';
import { withTimeout } from '@perch/platform';
import { afterEnd, type BreakerState, closedForMs, freshBreaker } from './breaker.decide.ts';
import type { CellListener, CellPort } from './cell.port.ts';
import { type Binding, Cell, type CellOwner } from './cell.ts';
import { chooseCell, wantsMore } from './choice.decide.ts';
import { Job, nextVisitId } from './job.ts';
import { PoolStats } from './pool-stats.ts';
import { type CellEnd, culpritOf, verdictOf } from './verdict.decide.ts';

export interface PoolSettings {
  /** Cells of one module at most. */
  mostCells: number;
  /** Of buffers outside of the heap, in one cell. */
  offHeapMb: number;
  loadLimitMs: number;
  unloadLimitMs: number;
  /** A cell that gives no sign of life for so long is ended. */
  stuckLimitMs: number;
}

export interface PoolParts {
  label: string;
  kind: 'worker' | 'process';
  bundle: Uint8Array;
  settings: PoolSettings;
  openPort(listener: CellListener): CellPort;
  tell(level: 'debug' | 'warn', what: string, fields: Record<string, unknown>): void;
}

const lookEveryMs = 1_000;
const mostTries = 2;

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
  private lastEnd = '';
  private lookedAtMs = 0;

  constructor(parts: PoolParts) {
    this.parts = parts;
    this.label = parts.label;
    this.stats = new PoolStats(parts.label, parts.kind);
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
    for (const cell of [...this.cells]) cell.sweep(nowMs, parts.settings.stuckLimitMs);
    if (this.waiting.some((job) => nowMs >= job.deadlineAtMs)) {
      const late = this.waiting.filter((job) => nowMs >= job.deadlineAtMs);
      this.waiting = this.waiting.filter((job) => nowMs < job.deadlineAtMs);
      for (const job of late) job.reject(job.timeout(label, 'found no worker within'));
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
    const culprit = culpritOf(end);
    for (const [id, job] of cell.jobs) {
      const { hook, tries } = job;
      const overdue = nowMs >= job.deadlineAtMs;
      // calls run in their order: what came after the one that stood still has not begun
      const begun = end.running === 0 || id <= end.running;
      const verdict = verdictOf({ id, hook, begun, tries, overdue: overdue && id === culprit }, end);
      if (verdict.kind === 'again') this.again(job);
      else if (verdict.code === 'module') job.reject(new AppError('module', `module ${this.label}: ${verdict.words}`));
      else job.reject(new AppError('timeout', `module ${this.label}: ${verdict.words} ${Math.round(job.limitMs)} ms; its worker was ended`)); // biome-ignore format: one sentence
    }
    cell.jobs.clear();
    this.refuseWaiting(nowMs);
    if (!this.isIdle && this.cells.length === 0) this.startSoon();
  }

  printed(text: string): void {
    this.parts.tell('debug', 'module wrote', { module: this.label, text: text.slice(0, 2_000) });
  }

  /** Ends every cell; calls in them fail. */
  endAll(): void {
    const { cells } = this;
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
    this.waiting.push(job);
    if (closedForMs(this.breaker, nowMs) > 0) this.refuseWaiting(nowMs);
    else this.startSoon();
  }

  /** What the visit carried went with its cell: `preprocess` is run again in another one. */
  private revive(job: Job): void {
    const { visit, ctx } = job;
    job.tries += 1;
    if (job.tries > mostTries) {
      job.reject(new AppError('module', `module ${this.label}: its workers ended before ${job.hook} was done: ${this.lastEnd}`)); // biome-ignore format: one sentence
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

  private again(job: Job): void {
    this.stats.again += 1;
    job.visit.cell = undefined;
    if (job.hook !== 'preprocess') this.revive(job);
    else {
      job.tries += 1;
      this.place(job);
    }
  }

  private startSoon(): void {
    if (this.starting > 0) return;
    this.start().catch((error: Error) => {
      const nowMs = performance.now();
      this.lastEnd = error.message;
      this.breaker = afterEnd(this.breaker, nowMs);
      this.parts.tell('warn', 'worker of module not started', { module: this.label, reason: error.message });
      for (const job of this.waiting.splice(0)) job.reject(error);
    });
  }

  private async start(): Promise<void> {
    this.starting += 1;
    const cell = new Cell(this, this.parts.bundle, this.parts.openPort);
    this.stats.starts += 1;
    try {
      await Promise.all([...this.bindings.values()].map((binding) => this.load(cell, binding)));
    } catch (error) {
      cell.end('it did not start');
      throw error;
    } finally {
      this.starting -= 1;
    }
    if (this.isIdle) return cell.end('the module was unloaded');
    this.cells.push(cell);
    for (const job of this.waiting.splice(0)) this.send(job);
  }

  private async load(cell: Cell, binding: Binding): Promise<void> {
    const { loadLimitMs } = this.parts.settings;
    const loading = cell.bind(binding);
    loading.catch(() => undefined);
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const words = `load ran longer than ${loadLimitMs} ms`;
        reject(new AppError('module', `module ${this.label}: ${words}; its worker was ended`));
        cell.end(words);
      }, loadLimitMs);
    });
    await Promise.race([loading, limit]).finally(() => clearTimeout(timer));
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
          `module ${this.label}: its workers end again and again (last: ${this.lastEnd}); it is tried again in ${seconds} s`,
          { retryAfterMs: forMs },
        ),
      );
    this.stats.refused += 1;
  }

  private look(nowMs: number): void {
    const { settings } = this.parts;
    const mostBytes = settings.offHeapMb * 1_048_576;
    for (const cell of [...this.cells]) {
      if (cell.offHeapBytes > mostBytes)
        cell.end(
          `it held ${Math.round(cell.offHeapBytes / 1_048_576)} MB of buffers, more than ${settings.offHeapMb} MB`,
        );
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
