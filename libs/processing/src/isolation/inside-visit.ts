import type { Tensors } from '@perch/contracts/plain';
import type { CallContext, ServeOptions } from '../contract.ts';
import type { BatchWriter } from './batch.ts';
import type { Ask, FromCell, Note, VisitFacts } from './wire.ts';

/** What a visit needs of the cell it is in. */
export interface VisitHost {
  readonly out: BatchWriter<FromCell>;
  /** The router's clock. */
  nowMs(): number;
  ask(call: number, request: () => Ask): Promise<unknown>;
  send(message: FromCell): void;
}

/** More than this of one visit is not told any more: a module that logs in a loop hurts nobody else. */
const mostNotes = 1_000;
const longestText = 2_000;

/** A request's way through a module, inside the cell: its context, its state and what it carries stay here. */
export class InsideVisit implements CallContext {
  readonly requestId: string;
  readonly endpoint: string;
  readonly version: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly streams: boolean;
  readonly deadlineAtMs: number;
  /** The hook that runs, or ran last. */
  call = 0;
  carry: unknown;
  inputs: unknown;
  outputs: unknown;
  readonly id: number;
  private readonly host: VisitHost;
  private own: Record<string, unknown> | undefined;
  private controller: AbortController | undefined;
  private notes = 0;

  constructor(id: number, facts: VisitFacts, host: VisitHost) {
    this.id = id;
    this.host = host;
    this.requestId = facts.requestId;
    this.endpoint = facts.endpoint;
    this.version = facts.version;
    this.headers = facts.headers;
    this.streams = facts.streams;
    this.deadlineAtMs = facts.deadlineAtMs;
  }

  get state(): Record<string, unknown> {
    this.own ??= {};
    return this.own;
  }

  /** Told by the router when the client goes away; made when a module first looks at it. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      this.host.send({ op: 'signal', visit: this.id, call: this.call });
      setTimeout(() => this.abort(), Math.min(this.remainingMs(), 2 ** 31 - 1)).unref();
    }
    return this.controller.signal;
  }

  abort(): void {
    this.controller?.abort(new DOMException('the request has ended', 'AbortError'));
  }

  remainingMs(): number {
    return Math.max(0, this.deadlineAtMs - this.host.nowMs());
  }

  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: Record<string, unknown>): void {
    const text = fields === undefined ? undefined : JSON.stringify(fields);
    this.note({
      what: 'log',
      level,
      message: String(message).slice(0, longestText),
      ...(text === undefined || text.length > longestText ? {} : { fields: text }),
    });
  }
  observe(name: string, value: number | string): void {
    this.note({ what: 'observe', name: String(name), value: typeof value === 'string' ? value : Number(value) });
  }
  count(name: string, by = 1): void {
    this.note({ what: 'count', name: String(name), value: Number(by) });
  }
  flag(name: string): void {
    this.note({ what: 'flag', name: String(name) });
  }

  async infer(inputs: Tensors): Promise<Tensors> {
    return (await this.ask(() => ({ what: 'infer', value: this.host.out.tensors(inputs) }))) as Tensors;
  }
  serve(endpoint: string, body: unknown, options: ServeOptions = {}): Promise<unknown> {
    const { version, contentType, timeoutMs } = options;
    return this.ask(() => ({
      what: 'serve',
      endpoint,
      value: this.host.out.value(body ?? null),
      ...(version === undefined ? {} : { version }),
      ...(contentType === undefined ? {} : { contentType }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    }));
  }
  async stream(event: unknown): Promise<void> {
    if (this.streams) await this.ask(() => ({ what: 'stream', value: { as: 'json', text: JSON.stringify(event) } }));
  }

  private ask(request: () => Ask): Promise<unknown> {
    return this.host.ask(this.call, request);
  }

  private note(note: Note): void {
    this.notes += 1;
    if (this.notes <= mostNotes) this.host.send({ op: 'note', call: this.call, note });
  }
}
