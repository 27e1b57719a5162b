import type { HttpExchange, HttpReply, RequestHead } from '../http1/index.ts';
import type { Branch } from './branches.ts';
import type { Caller } from './inner-calls.ts';

/** The request of a call that another call makes, in this process: it ends with the outer one. */
export class InnerExchange implements HttpExchange {
  readonly head: RequestHead;
  body: Buffer[];
  recyclable = false;
  readonly startedAt = performance.now();
  context: unknown;
  private readonly outer: Caller;
  private readonly branch: Branch;

  constructor(
    outer: Caller,
    branch: Branch,
    path: string,
    { contentType, bytes }: { contentType: string; bytes: Buffer },
  ) {
    const { authorization, traceparent, tracestate } = outer.exchange.head.headers;
    this.outer = outer;
    this.branch = branch;
    this.body = [bytes];
    this.head = {
      method: 'POST',
      path,
      query: '',
      headers: { authorization, traceparent, tracestate, 'content-type': contentType },
      contentLength: bytes.length,
      keepAlive: true,
      expectsContinue: false,
    };
  }

  get cancelled(): boolean {
    return this.branch.cancelled;
  }
  get onCancel(): (() => void) | undefined {
    return this.branch.onCancel;
  }
  set onCancel(listener: (() => void) | undefined) {
    this.branch.onCancel = listener;
  }
  get signal(): AbortSignal {
    return this.outer.signal;
  }

  /** Its reply goes to who made the call, not to a connection. */
  reply(_reply: HttpReply): void {}
}
