import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { AppError } from '@perch/contracts';
import { HttpConnection } from './http-connection.ts';
import type { HttpApplication } from './http-exchange.ts';

export interface HttpServerOptions {
  application: HttpApplication;
  tls?: { cert: Buffer; key: Buffer };
  /**
   * Limits of a connection's phases in milliseconds: waiting for a request, its head, the next piece of its body, and for
   * its client to take more of a streamed reply.
   */
  idleMs?: number;
  headMs?: number;
  bodyMs?: number;
  stalledMs?: number;
  maxConnections?: number;
  /** From the word to stop on, connections are still taken for so long; each is answered and told to close. Default 0. */
  stopDelayMs?: number;
}

const sweepEveryMs = 1_000;
const drainLookMs = 25;
const closingMs = 2_000;
/** While stopping, a connection silent for this long is closed; a client that still uses it is answered and told to close. */
const stoppingIdleMs = 1_000;

/**
 * HTTP/1.1 on bare sockets: the request path's cost is mostly that of node:http, so this server does without it. It knows
 * heads, bodies and keep-alive, and nothing of what is served.
 */
export class HttpServer {
  readonly application: HttpApplication;
  stopping = false;
  private stoppedAt = 0;
  private readonly options: Required<Omit<HttpServerOptions, 'application' | 'tls'>>;
  private readonly server: Server;
  private readonly connections = new Set<HttpConnection>();
  private readonly sweeper: NodeJS.Timeout;

  constructor({ application, tls, ...limits }: HttpServerOptions) {
    this.application = application;
    this.options = {
      idleMs: 75_000,
      headMs: 10_000,
      bodyMs: 30_000,
      stalledMs: 30_000,
      maxConnections: 20_000,
      stopDelayMs: 0,
      ...limits,
    };
    const accept = (socket: Socket) => this.accept(socket);
    const settings = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000, pauseOnConnect: !tls };
    this.server = tls
      ? createTlsServer({ ...settings, ...tls, ALPNProtocols: ['http/1.1'], minVersion: 'TLSv1.2' }, accept)
      : createServer(settings, accept);
    this.sweeper = setInterval(() => this.sweep(performance.now()), sweepEveryMs).unref();
  }

  /** Resolves to the port in use. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', (cause) => {
        reject(new AppError('unavailable', `cannot listen on ${host}:${port}: ${cause.message}`, { cause }));
      });
      this.server.listen({ port, host, backlog: 1_024 }, () => {
        const address = this.server.address();
        resolve(typeof address === 'object' && address ? address.port : port);
      });
    });
  }

  closed(connection: HttpConnection): void {
    this.connections.delete(connection);
  }

  private accept(socket: Socket): void {
    if (this.connections.size >= this.options.maxConnections) {
      socket.destroy();
      return;
    }
    const connection = new HttpConnection(this);
    this.connections.add(connection);
    connection.open(socket);
  }

  /**
   * Takes no new connection once whoever sends here had time to hear of it, answers what is in hand, and closes; after
   * `graceMs` more whatever is left. Closing the listener resets connections that nobody has accepted yet, so the fewer
   * come by then the better.
   */
  async close(graceMs: number): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    this.stoppedAt = performance.now();
    await new Promise((resolve) => setTimeout(resolve, this.options.stopDelayMs));
    const deadline = performance.now() + graceMs;
    this.server.close();
    clearInterval(this.sweeper);
    while (this.connections.size > 0) {
      const now = performance.now();
      if (now >= deadline) for (const connection of this.connections) connection.destroy();
      this.sweep(now);
      await new Promise((resolve) => setTimeout(resolve, drainLookMs));
    }
  }

  private sweep(now: number): void {
    const { idleMs, headMs, bodyMs, stalledMs } = this.options;
    const limits = {
      idle: this.stopping ? stoppingIdleMs : idleMs,
      head: headMs,
      body: bodyMs,
      answer: Number.POSITIVE_INFINITY, // the request's own deadline ends it
      stalled: stalledMs,
      closing: closingMs,
    };
    // A client that was silent before the stop began may be about to use its connection: it is given time, too.
    const silentSince = ({ phase, since }: HttpConnection) =>
      phase === 'idle' ? Math.max(since, this.stoppedAt) : since;
    for (const connection of this.connections)
      if (now - silentSince(connection) > limits[connection.phase]) connection.destroy();
  }
}
