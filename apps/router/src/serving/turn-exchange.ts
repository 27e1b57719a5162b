import type { HttpExchange, HttpReply, RequestHead } from '../http1/index.ts';
import type { Call } from './call.ts';

/** The request that one run of a node counts as: it ends when that run is given up. */
export class TurnExchange implements HttpExchange {
  readonly head: RequestHead;
  body: Buffer[] = [];
  recyclable = false;
  readonly startedAt = performance.now();
  context: unknown;
  onCancel: (() => void) | undefined;
  readonly signal: AbortSignal;

  constructor({ exchange }: Call, signal: AbortSignal, traceparent: string) {
    const { authorization, tracestate } = exchange.head.headers;
    this.signal = signal;
    this.head = {
      method: 'POST',
      path: exchange.head.path,
      query: '',
      headers: { authorization, traceparent, ...(tracestate === undefined ? {} : { tracestate }) },
      contentLength: 0,
      keepAlive: true,
      expectsContinue: false,
    };
    signal.addEventListener('abort', () => this.onCancel?.(), { once: true });
  }

  get cancelled(): boolean {
    return this.signal.aborted;
  }

  /** Its reply goes to the pipeline, not to a connection. */
  reply(_reply: HttpReply): void {}
}
