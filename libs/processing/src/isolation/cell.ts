import { AppError, type Signature } from '@perch/contracts/plain';
import type { FileSource } from '../contract.ts';
import { type Batch, BatchWriter, parsedAt, valueAt } from './batch.ts';
import { moduleError } from './carried-error.ts';
import type { CellListener, CellPort } from './cell.port.ts';
import { answerAsk, takeNote } from './cell-asks.ts';
import type { Job } from './job.ts';
import type { CellEnd } from './verdict.decide.ts';
import type { CarriedError, FromCell, ToCell } from './wire.ts';

/** A module bound to a version, as its cells load it. */
export interface Binding {
  readonly id: number;
  readonly options: unknown;
  readonly signature: Signature;
  readonly maxBatchSize: number;
  readonly files: FileSource;
}

export interface CellOwner {
  readonly label: string;
  ended(cell: Cell, end: CellEnd): void;
  printed(text: string): void;
}

/** A kept value: it is in the cell, for the next hook of the same visit. */
export const kept = Object.freeze({});

interface Waiting {
  resolve(): void;
  reject(error: unknown): void;
}

/** One worker thread or process that runs a module, and the calls that are in it. */
export class Cell implements CellListener {
  readonly jobs = new Map<number, Job>();
  /** Bindings it has loaded. */
  readonly bound = new Set<number>();
  offHeapBytes = 0;
  busyShare = 0;
  /** It is not to take any more calls. */
  over = false;
  /** Resolves when the module has been read; rejects with what its top level threw. */
  readonly ready: Promise<void>;
  private readonly port: CellPort;
  private readonly owner: CellOwner;
  private readonly out = new BatchWriter<ToCell>();
  private readonly binds = new Map<number, Waiting>();
  private readonly unbinds = new Map<number, Waiting>();
  private readonly sources = new Map<number, FileSource>();
  private readonly loadErrors: unknown[] = [];
  private starts!: Waiting;
  private nextCall = 1;
  private flushing = false;
  private lastWords: { words: string; ran: readonly number[] } | undefined;
  private blamed = 0;
  private pingedAtMs: number | undefined;
  private runningSince = 0;
  private runningLast = 0;

  constructor(owner: CellOwner, bundle: Uint8Array, openPort: (listener: CellListener) => CellPort) {
    this.owner = owner;
    this.ready = new Promise((resolve, reject) => {
      this.starts = { resolve, reject };
    });
    this.ready.catch(() => undefined);
    this.port = openPort(this);
    const place = this.out.place(bundle);
    this.send({ op: 'hello', nowMs: performance.now(), label: owner.label, bundle: place });
  }

  get label(): string {
    return this.owner.label;
  }

  get kind(): CellPort['kind'] {
    return this.port.kind;
  }

  /** Resolves when the module has loaded for this binding here. */
  bind({ id, options, signature, maxBatchSize, files }: Binding): Promise<void> {
    this.sources.set(id, files);
    this.send({ op: 'bind', binding: id, options, signature, maxBatchSize, files: files.list() });
    return new Promise((resolve, reject) => this.binds.set(id, { resolve, reject }));
  }

  /** Resolves when the module's `unload` has ended. */
  unbind(id: number): Promise<void> {
    if (this.over || !this.bound.delete(id)) return Promise.resolve();
    this.sources.delete(id);
    this.send({ op: 'unbind', binding: id });
    return new Promise((resolve, reject) => this.unbinds.set(id, { resolve, reject }));
  }

  run(job: Job): void {
    const { visit, hook } = job;
    job.id = this.nextCall++;
    this.jobs.set(job.id, job);
    const opens = hook === 'preprocess';
    try {
      const value = job.value(this.out);
      this.send({
        op: 'call',
        id: job.id,
        hook,
        binding: visit.binding,
        visit: visit.id,
        ...(opens ? { facts: factsOf(job), ...(visit.contentType ? { contentType: visit.contentType } : {}) } : {}),
        value,
        ...(job.tries > 0 ? { alone: true as const } : {}),
      });
    } catch (error) {
      this.jobs.delete(job.id);
      job.reject(error);
    }
  }

  send(message: ToCell): void {
    if (this.over) return;
    this.out.add(message);
    if (this.flushing) return;
    this.flushing = true;
    setImmediate(() => {
      this.flushing = false;
      if (!this.over) this.port.post(this.out.take());
    });
  }

  get writer(): BatchWriter<ToCell> {
    return this.out;
  }

  /** For how long the hook that runs now has run, as far as it was looked at; 0: none does. */
  stuckMs(nowMs: number): number {
    const running = this.port.running();
    if (running !== this.runningLast) {
      this.runningLast = running;
      this.runningSince = nowMs;
    }
    return running === 0 ? 0 : nowMs - this.runningSince;
  }

  /** Gives up calls whose time has passed, and ends the cell where one of them stands still in its hook. */
  sweep(nowMs: number, { stuckLimitMs, silentLimitMs }: { stuckLimitMs: number; silentLimitMs: number }): void {
    const running = this.port.running();
    for (const [id, job] of this.jobs) {
      if (nowMs < job.deadlineAtMs) continue;
      if (id === running) {
        this.end('its time was over', id);
        return;
      }
      this.giveUp(id, job, nowMs);
    }
    // what runs was given up before it began
    if (running > 0 && !this.jobs.has(running) && this.stuckMs(nowMs) > stuckLimitMs)
      this.end('it stood still', running);
    if (this.pingedAtMs !== undefined && running === 0 && nowMs - this.pingedAtMs > silentLimitMs)
      this.end(`it stood still for ${Math.round(nowMs - this.pingedAtMs)} ms, outside of any hook`);
  }

  private giveUp(id: number, job: Job, nowMs: number): void {
    this.jobs.delete(id);
    this.send({ op: 'drop', visit: job.visit.id });
    this.ping(nowMs);
    job.reject(job.timeout(this.owner.label, 'gave no answer within'));
  }

  /** Asks for a sign of life, and what memory it holds. */
  ping(nowMs: number): void {
    if (this.pingedAtMs !== undefined) return;
    this.pingedAtMs = nowMs;
    this.send({ op: 'ping' });
    this.busyShare = this.port.busyShare();
  }

  get residentBytes(): number {
    return this.port.residentBytes;
  }

  /** `blamed`: the call at fault. */
  end(words: string, blamed = 0): void {
    if (this.over) return;
    this.over = true;
    this.blamed = blamed;
    this.lastWords ??= { words, ran: [] };
    void this.port.end().then(() => this.gone(words));
  }

  heard({ messages, bytes }: Batch<FromCell>): void {
    for (const message of messages) this.take(message, bytes);
  }

  printed(text: string): void {
    this.owner.printed(text);
  }

  gone(words: string): void {
    const told = this.lastWords ?? { words, ran: [] };
    const running = this.blamed || (told.ran.length > 0 ? 0 : this.port.running());
    this.over = true;
    const ended = (hook: string) =>
      new AppError('module', `module ${this.owner.label}: ${hook} ended its ${this.port.kind}: ${told.words}`);
    this.starts.reject(ended('its top level'));
    for (const { reject } of this.binds.values()) reject(ended('load'));
    for (const { reject } of this.unbinds.values()) reject(ended('unload'));
    this.binds.clear();
    this.unbinds.clear();
    this.owner.ended(this, { ...told, kind: this.port.kind, running, lastBegun: this.port.begun() });
  }

  private take(message: FromCell, bytes: Uint8Array): void {
    switch (message.op) {
      case 'done':
        this.done(message, bytes);
        return;
      case 'note':
        takeNote(this.jobs.get(message.call)?.ctx, message.note);
        return;
      case 'ask':
        void this.asked(message, bytes);
        return;
      case 'signal': {
        const { visit } = message;
        const signal = this.jobs.get(message.call)?.ctx.signal;
        if (signal?.aborted) this.send({ op: 'abort', visit });
        else signal?.addEventListener('abort', () => this.send({ op: 'abort', visit }), { once: true });
        return;
      }
      case 'ready':
        if (message.error) this.starts.reject(moduleError(this.owner.label, 'its top level', message.error));
        else this.starts.resolve();
        return;
      case 'bound':
        this.settle(this.binds, message.binding, message.error, 'load');
        return;
      case 'unbound':
        this.settle(this.unbinds, message.binding, message.error, 'unload');
        return;
      case 'pong':
        this.pingedAtMs = undefined;
        this.offHeapBytes = message.offHeapBytes;
        return;
      case 'dying':
        this.lastWords = message;
    }
  }

  private settle(waiting: Map<number, Waiting>, binding: number, error: CarriedError | undefined, hook: string): void {
    const one = waiting.get(binding);
    waiting.delete(binding);
    if (!error && hook === 'load') this.bound.add(binding);
    if (!error) one?.resolve();
    else if (error.ref !== undefined && hook === 'load') one?.reject(this.loadErrors[error.ref]);
    else one?.reject(moduleError(this.owner.label, hook, error));
  }

  private done({ id, value, error }: Extract<FromCell, { op: 'done' }>, bytes: Uint8Array): void {
    const job = this.jobs.get(id);
    if (!job) return;
    this.jobs.delete(id);
    if (error) {
      const ours = error.ref === undefined ? undefined : job.errors[error.ref];
      job.reject(ours ?? moduleError(this.owner.label, job.hook, error));
    } else job.resolve(!value || value.as === 'kept' ? kept : valueAt(bytes, value));
  }

  private async asked({ ask, call, request }: Extract<FromCell, { op: 'ask' }>, bytes: Uint8Array): Promise<void> {
    const job = this.jobs.get(call);
    const errors = request.what === 'read' ? this.loadErrors : job?.errors;
    const given = 'value' in request ? parsedAt(bytes, request.value) : undefined;
    const answer = await answerAsk(request, given, { ctx: job?.ctx, files: this.sources, errors });
    const value = 'error' in answer ? answer : { value: this.out.value(answer.value) };
    this.send({ op: 'answer', ask, ...value });
  }
}

const factsOf = ({ ctx, deadlineAtMs }: Job) => ({
  requestId: ctx.requestId,
  endpoint: ctx.endpoint,
  version: ctx.version,
  headers: ctx.headers,
  streams: ctx.streams,
  deadlineAtMs,
});
