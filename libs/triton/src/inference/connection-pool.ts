import { TritonFault } from '../wire/index.ts';
import { Connection, type ConnectionOwner, type Exchange } from './connection.ts';
import { ConnectionFault } from './connection-fault.ts';
import type { RawReply } from './reply-reader.ts';

export interface PoolLimits {
  /** Connections to one server; further requests wait for one within their time. */
  maxConnections: number;
  /** An idle connection is closed after this. */
  idleMs: number;
}

interface Waiting {
  exchange: Exchange;
  resolve: (reply: RawReply | Promise<RawReply>) => void;
  deadlineAt: number;
}

/** The connections to one server. The one used last is taken first, so that the surplus falls idle and is closed. */
export class ConnectionPool implements ConnectionOwner {
  private readonly host: string;
  private readonly port: number;
  private readonly limits: PoolLimits;
  private readonly all = new Set<Connection>();
  private readonly idle: Connection[] = [];
  private readonly waiting: Waiting[] = [];

  constructor(address: string, limits: PoolLimits) {
    const colon = address.lastIndexOf(':');
    this.host = address.slice(0, colon).replace(/^\[|\]$/g, '');
    this.port = Number(address.slice(colon + 1));
    this.limits = limits;
  }

  get isEmpty(): boolean {
    return this.all.size === 0;
  }

  send(exchange: Exchange): Promise<RawReply> {
    const connection = this.idle.pop() ?? this.open();
    return connection ? connection.send(exchange) : this.wait(exchange);
  }

  released(connection: Connection): void {
    connection.idleSince = Date.now();
    this.idle.push(connection);
    this.serveWaiting();
  }

  closed(connection: Connection): void {
    this.all.delete(connection);
    const at = this.idle.indexOf(connection);
    if (at >= 0) this.idle.splice(at, 1);
    this.serveWaiting();
  }

  /** Closes what has been idle for too long. */
  sweep(now: number): void {
    for (const connection of [...this.idle]) if (now - connection.idleSince > this.limits.idleMs) connection.destroy();
  }

  destroy(): void {
    for (const connection of [...this.all]) connection.destroy();
  }

  private open(): Connection | undefined {
    if (this.all.size >= this.limits.maxConnections) return undefined;
    const connection = new Connection(this.host, this.port, this);
    this.all.add(connection);
    return connection;
  }

  private wait(exchange: Exchange): Promise<RawReply> {
    return new Promise((resolve, reject) => {
      const { timeoutMs, cancellation } = exchange.options;
      const leave = (fault: TritonFault) => {
        this.waiting.splice(this.waiting.indexOf(entry), 1);
        settle();
        reject(fault);
      };
      const timer = setTimeout(() => {
        leave(new ConnectionFault('nothing', exchange.tried, `no free connection within ${timeoutMs} ms`));
      }, timeoutMs);
      const cancel = () => leave(new TritonFault('cancelled', exchange.tried, 'cancelled by the caller'));
      const settle = () => {
        clearTimeout(timer);
        if (cancellation) cancellation.onCancel = undefined;
      };
      if (cancellation) cancellation.onCancel = cancel;
      const entry: Waiting = {
        exchange,
        deadlineAt: performance.now() + timeoutMs,
        resolve: (reply) => {
          settle();
          resolve(reply);
        },
      };
      this.waiting.push(entry);
    });
  }

  private serveWaiting(): void {
    while (this.waiting.length > 0) {
      const connection = this.idle.pop() ?? this.open();
      if (!connection) return;
      const { exchange, resolve, deadlineAt } = this.waiting.shift()!;
      const timeoutMs = Math.max(1, deadlineAt - performance.now());
      resolve(connection.send({ ...exchange, options: { ...exchange.options, timeoutMs } }));
    }
  }
}
