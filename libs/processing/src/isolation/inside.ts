import { AppError } from '@perch/contracts/plain';
import type { AnyModule, FileSource } from '../contract.ts';
import { type LoadedProcessing, loadModule } from '../loaded-module.ts';
import { type Batch, BatchWriter, bytesAt, parsedAt, valueAt } from './batch.ts';
import { importBundle } from './bundle.ts';
import { appErrorOf, carryError } from './carried-error.ts';
import { InsideVisit, type VisitHost } from './inside-visit.ts';
import { type Ask, type BindMessage, type CallMessage, type FromCell, type ToCell, tensorsLike } from './wire.ts';

/** How a cell reaches the router. */
export interface InsidePort {
  post(batch: Batch<FromCell>): void;
  /** Says, at once and whatever follows, which call's hook runs now; 0: none. */
  mark(call: number): void;
}

/** Answers wait no longer than this for others of the same turn. */
const holdMs = 1;
const sweepEveryMs = 1_000;
const lateMs = 1_000;

/** Runs a module for the router: in a thread or in a process, which differ by their port alone. */
export class Inside implements VisitHost {
  readonly out = new BatchWriter<FromCell>();
  private readonly port: InsidePort;
  private readonly bindings = new Map<number, LoadedProcessing>();
  private readonly hooks = new Map<number, AnyModule>();
  private readonly visits = new Map<number, InsideVisit>();
  private readonly asks = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  /** Errors of the router's that went through the module's hands. */
  private readonly refs = new WeakMap<object, number>();
  private module: Promise<AnyModule> | undefined;
  private nextAsk = 1;
  private clockMs = 0;
  private flushing = false;
  private heldSince = 0;
  private ran: number[] = [];
  private readonly alone: [CallMessage, Uint8Array][] = [];

  constructor(port: InsidePort) {
    this.port = port;
    setInterval(() => this.sweep(), sweepEveryMs).unref();
  }

  nowMs(): number {
    return performance.now() + this.clockMs;
  }

  receive({ messages, bytes }: Batch<ToCell>): void {
    for (const message of messages) this.take(message, bytes);
  }

  send(message: FromCell): void {
    this.out.add(message);
    if (!this.flushing) {
      this.flushing = true;
      this.heldSince = performance.now();
      setImmediate(() => this.flush());
    } else if (performance.now() - this.heldSince > holdMs) this.flush();
  }

  /** What comes out of nowhere (a timer, a promise nobody waits for) ends the cell, with words for it. */
  die(words: string): void {
    const { messages, bytes } = this.out.take();
    // what ran in this turn may be at fault: it is not answered as if nothing had happened
    const told = messages.filter((message) => message.op !== 'done' || !this.ran.includes(message.id));
    this.port.post({ messages: [...told, { op: 'dying', words: words.slice(0, 400), ran: this.ran }], bytes });
  }

  ask(call: number, request: () => Ask): Promise<unknown> {
    const ask = this.nextAsk++;
    return new Promise((resolve, reject) => {
      const message = { op: 'ask', ask, call, request: request() } as const;
      this.asks.set(ask, { resolve, reject });
      this.send(message);
    });
  }

  private flush(): void {
    this.flushing = false;
    this.ran = [];
    if (!this.out.isEmpty) this.port.post(this.out.take());
  }

  private take(message: ToCell, bytes: Uint8Array): void {
    switch (message.op) {
      case 'hello':
        this.clockMs = message.nowMs - performance.now();
        this.module = importBundle(bytesAt(bytes, message.bundle), message.label);
        this.module.then(
          (module) => this.send({ op: 'ready', hooks: hooksOf(module) }),
          (error) => this.send({ op: 'ready', hooks: [], error: carryError(error) }),
        );
        return;
      case 'bind':
        void this.bind(message);
        return;
      case 'unbind':
        void this.unbind(message.binding);
        return;
      case 'call':
        if (message.alone) this.runAlone(message, bytes);
        else this.run(message, bytes);
        return;
      case 'answer':
        this.answered(message, bytes);
        return;
      case 'abort':
        this.visits.get(message.visit)?.abort();
        return;
      case 'drop':
        this.visits.delete(message.visit);
        return;
      case 'ping': {
        const { arrayBuffers, heapUsed } = process.memoryUsage();
        this.send({ op: 'pong', offHeapBytes: arrayBuffers, heapBytes: heapUsed });
      }
    }
  }

  private async bind({ binding, options, signature, maxBatchSize, files }: BindMessage): Promise<void> {
    try {
      const module = await this.module!;
      const source: FileSource = {
        list: () => files,
        read: async (path) => Buffer.from((await this.ask(0, () => ({ what: 'read', binding, path }))) as Uint8Array),
      };
      const loaded = await loadModule(module, options, { files: source, signature, maxBatchSize });
      this.bindings.set(binding, loaded);
      this.hooks.set(binding, module);
      this.send({ op: 'bound', binding, hooks: hooksOf(module) });
    } catch (error) {
      this.send({ op: 'bound', binding, hooks: [], error: carryError(error, this.refOf(error)) });
    }
  }

  private async unbind(binding: number): Promise<void> {
    const loaded = this.bindings.get(binding);
    this.bindings.delete(binding);
    this.hooks.delete(binding);
    try {
      await loaded?.unload();
      this.send({ op: 'unbound', binding });
    } catch (error) {
      this.send({ op: 'unbound', binding, error: carryError(error) });
    }
  }

  private runAlone(message: CallMessage, bytes: Uint8Array): void {
    this.alone.push([message, bytes]);
    if (this.alone.length > 1) return;
    const next = () => {
      const one = this.alone[0];
      if (!one) return;
      this.flush();
      this.run(...one);
      // promises of this one come before the next
      setImmediate(() => {
        this.alone.shift();
        next();
      });
    };
    setImmediate(next);
  }

  private run(message: CallMessage, bytes: Uint8Array): void {
    const { id } = message;
    try {
      const visit = this.visitOf(message);
      const loaded = this.bindings.get(message.binding);
      if (!loaded) throw new AppError('unavailable', 'the module is not loaded in this cell');
      if (visit.remainingMs() === 0) throw new AppError('timeout', `no time was left before ${message.hook} began`);
      visit.call = id;
      this.ran.push(id);
      this.port.mark(id);
      const result = this.hook(message, loaded, visit, bytes);
      this.port.mark(0);
      if (!(result instanceof Promise)) this.done(message, visit, result);
      else
        result.then(
          (value) => this.done(message, visit, value),
          (error) => this.failed(id, error),
        );
    } catch (error) {
      this.port.mark(0);
      this.failed(id, error);
    }
  }

  private hook(
    { hook, contentType, value }: CallMessage,
    loaded: LoadedProcessing,
    visit: InsideVisit,
    bytes: Uint8Array,
  ) {
    if (hook === 'preprocess') return loaded.preprocess(valueAt(bytes, value) as Buffer, contentType, visit);
    const given = value.as === 'kept' ? undefined : valueAt(bytes, value);
    if (hook === 'process') return loaded.process!((given ?? visit.inputs) as never, visit.carry, visit);
    return loaded.postprocess(given ?? visit.outputs, visit.carry, visit);
  }

  /** What a later hook of the same visit takes stays here. */
  private done({ id, hook, binding }: CallMessage, visit: InsideVisit, result: unknown): void {
    try {
      const module = this.hooks.get(binding);
      if (hook === 'preprocess') {
        const { inputs, carry } = (result ?? {}) as { inputs?: unknown; carry?: unknown };
        visit.carry = carry;
        if (module?.process) visit.inputs = inputs;
        else if (!tensorsLike(inputs))
          throw new TypeError('it answered no inputs; wanted { inputs: { name: tensor, … } }');
        this.send({ op: 'done', id, value: module?.process ? { as: 'kept' } : this.out.value(inputs) });
        return;
      }
      if (hook === 'process' && module?.postprocess) {
        visit.outputs = result;
        this.send({ op: 'done', id, value: { as: 'kept' } });
        return;
      }
      this.visits.delete(visit.id);
      this.send({ op: 'done', id, value: this.out.value(result) });
    } catch (error) {
      this.failed(id, error);
    }
  }

  private failed(id: number, error: unknown): void {
    this.send({ op: 'done', id, error: carryError(error, this.refOf(error)) });
  }

  private refOf(error: unknown): number | undefined {
    return typeof error === 'object' && error !== null ? this.refs.get(error) : undefined;
  }

  private visitOf({ visit, facts }: CallMessage): InsideVisit {
    const known = this.visits.get(visit);
    if (known) return known;
    if (!facts) throw new AppError('timeout', 'the request was given up');
    const made = new InsideVisit(visit, facts, this);
    this.visits.set(visit, made);
    return made;
  }

  private answered({ ask, value, error }: Extract<ToCell, { op: 'answer' }>, bytes: Uint8Array): void {
    const waiting = this.asks.get(ask);
    this.asks.delete(ask);
    if (!waiting) return;
    if (!error) {
      waiting.resolve(value && parsedAt(bytes, value));
      return;
    }
    const made = appErrorOf(error);
    if (error.ref !== undefined) this.refs.set(made, error.ref);
    waiting.reject(made);
  }

  /** Requests that ended between two hooks left their visit behind. */
  private sweep(): void {
    const before = this.nowMs() - lateMs;
    for (const [id, { deadlineAtMs }] of this.visits) if (deadlineAtMs < before) this.visits.delete(id);
  }
}

const hooksOf = (module: AnyModule): string[] =>
  ['load', 'preprocess', 'process', 'postprocess', 'unload'].filter(
    (hook) => typeof (module as unknown as Record<string, unknown>)[hook] === 'function',
  );
