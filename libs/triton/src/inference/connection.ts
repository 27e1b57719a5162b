import { connect, type Socket } from 'node:net';
import { TritonFault } from '../wire/index.ts';
import { ConnectionFault, type Reached } from './connection-fault.ts';
import { type RawReply, ReplyReader } from './reply-reader.ts';
import type { CallOptions } from './transport.ts';

export interface Exchange {
  /** For messages: what is tried, and where. */
  tried: string;
  /** Sent behind one another. */
  parts: readonly Uint8Array[];
  sizeBytes: number;
  options: CallOptions;
}

/** What a connection tells its pool. */
export interface ConnectionOwner {
  /** It may carry the next request. */
  released(connection: Connection): void;
  /** It is gone, whatever it was doing. */
  closed(connection: Connection): void;
}

/** Below this a request is copied into one buffer, which costs less than writing its parts apart. */
const joinBelowBytes = 16_384;
const maxReplyBytes = 2_147_483_647;

/**
 * All connections read into one buffer: a read is handled before the next one begins, and what is kept is copied out.
 * Node's own way takes a fresh 64 KiB for each read.
 */
const readBuffer = Buffer.allocUnsafeSlow(262_144);

/** One keep-alive HTTP/1.1 connection to a Triton; one request at a time. */
export class Connection {
  idleSince = 0;
  private readonly owner: ConnectionOwner;
  private readonly socket: Socket;
  private readonly reader = new ReplyReader(maxReplyBytes);
  private exchange: Exchange | undefined;
  private resolve!: (reply: RawReply) => void;
  private reject!: (fault: TritonFault) => void;
  private timer: NodeJS.Timeout | undefined;
  private connected = false;
  private over = false;

  constructor(host: string, port: number, owner: ConnectionOwner) {
    this.owner = owner;
    this.socket = connect({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          this.read(length);
          return true;
        },
      },
    });
    this.socket.on('connect', () => {
      this.connected = true;
    });
    this.socket.on('error', (error) => this.fail(error.message, error));
    this.socket.on('end', () => this.ended());
    this.socket.on('close', () => this.fail('connection closed'));
  }

  /** Sends one request; the connection must not be carrying another. */
  send(exchange: Exchange): Promise<RawReply> {
    this.exchange = exchange;
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      const { timeoutMs, cancellation } = exchange.options;
      this.timer = setTimeout(this.expire, timeoutMs);
      if (cancellation) {
        if (cancellation.cancelled) return this.cancel();
        cancellation.onCancel = this.cancel;
      }
      this.write(exchange);
    });
  }

  destroy(): void {
    this.fail('connection closed by us');
  }

  private write({ parts, sizeBytes }: Exchange): void {
    const socket = this.socket;
    if (parts.length === 1) socket.write(parts[0]!);
    else if (sizeBytes < joinBelowBytes) socket.write(Buffer.concat(parts, sizeBytes));
    else {
      socket.cork();
      for (const part of parts) socket.write(part);
      socket.uncork();
    }
  }

  private read(length: number): void {
    try {
      if (!this.exchange) throw new Error('bytes that nobody asked for');
      const reply = this.reader.take(readBuffer, length);
      if (reply) this.finish(reply);
    } catch (error) {
      this.fail((error as Error).message, error);
    }
  }

  private ended(): void {
    const reply = this.exchange ? this.reader.end() : undefined;
    if (reply) this.finish(reply, false);
    this.fail('connection closed by the server');
  }

  private finish(reply: RawReply, alive = true): void {
    const resolve = this.resolve;
    reply.sent = this.socket.writableLength === 0;
    const reusable = alive && reply.head.keepAlive && reply.sent;
    this.settle();
    if (reusable) this.owner.released(this);
    else this.fail('not reusable');
    resolve(reply);
  }

  private settle(): void {
    clearTimeout(this.timer);
    const cancellation = this.exchange?.options.cancellation;
    if (cancellation) cancellation.onCancel = undefined;
    this.exchange = undefined;
  }

  private readonly expire = (): void => {
    const { tried, options } = this.exchange!;
    if (this.connected) this.close(new TritonFault('deadline', tried, `no answer within ${options.timeoutMs} ms`));
    else this.close(new ConnectionFault('nothing', tried, `no connection within ${options.timeoutMs} ms`));
  };

  private readonly cancel = (): void => {
    this.close(new TritonFault('cancelled', this.exchange!.tried, 'cancelled by the caller'));
  };

  private fail(text: string, cause?: unknown): void {
    const reached: Reached = !this.connected ? 'nothing' : this.reader.begun ? 'reply' : 'sent';
    this.close(this.exchange && new ConnectionFault(reached, this.exchange.tried, text, cause));
  }

  private close(fault: TritonFault | undefined): void {
    if (this.exchange && fault) {
      this.settle();
      this.reject(fault);
    }
    if (this.over) return;
    this.over = true;
    this.socket.destroy();
    this.owner.closed(this);
  }
}
