import type { Cancellation } from '@perch/triton/inference';
import { Body } from './body.ts';
import type { ReplyStream } from './reply-stream.ts';
import type { HttpReply, StreamHead } from './reply-text.ts';
import type { RequestHead } from './request-head.ts';

/** One request while it is answered. */
export interface HttpExchange extends Cancellation {
  readonly head: RequestHead;
  /** The body in the pieces it came in; complete when `answer` is called. */
  body: Buffer[];
  /** Set by the application when nobody holds a view of the body any more: its room is used again. */
  recyclable: boolean;
  /** `performance.now()` when the head was complete. */
  readonly startedAt: number;
  /** Whatever the application keeps between `admit` and `answer`. */
  context: unknown;
  /** Aborts when the client goes away; made on first use, since most requests never need it. */
  readonly signal: AbortSignal;
  /** Answers; later calls, and calls after the client left, do nothing. */
  reply(reply: HttpReply): void;
  /**
   * Answers piece by piece in place of `reply`, once the body is complete; undefined when the client has left. Absent where
   * the reply does not go to a connection.
   */
  stream?(head: StreamHead): ReplyStream | undefined;
}

export interface HttpApplication {
  /** Called with the head: the most bytes its body may have, or a reply that refuses it unread. */
  admit(exchange: HttpExchange): number | HttpReply;
  /** Called once the body is complete. Must lead to `exchange.reply`. */
  answer(exchange: HttpExchange): void;
  tooLarge(exchange: HttpExchange, limitBytes: number): HttpReply;
}

/** What an exchange needs of its connection. */
export interface ExchangeOwner {
  finish(exchange: Exchange, reply: HttpReply): void;
  beginStream(exchange: Exchange, head: StreamHead): ReplyStream | undefined;
}

export class Exchange implements HttpExchange {
  body: Buffer[] = [];
  recyclable = false;
  /** What has come of the body so far. */
  readonly received: Body;
  context: unknown;
  readonly startedAt = performance.now();
  readonly head: RequestHead;
  /** The client went away. */
  cancelled = false;
  onCancel: (() => void) | undefined;
  private readonly connection: ExchangeOwner;
  private controller: AbortController | undefined;

  constructor(connection: ExchangeOwner, head: RequestHead) {
    this.connection = connection;
    this.head = head;
    this.received = new Body(head.contentLength);
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.cancelled) this.controller.abort();
    return this.controller.signal;
  }

  reply(reply: HttpReply): void {
    this.connection.finish(this, reply);
  }

  stream(head: StreamHead): ReplyStream | undefined {
    return this.connection.beginStream(this, head);
  }

  leave(): void {
    this.cancelled = true;
    this.controller?.abort();
    this.onCancel?.();
  }
}
