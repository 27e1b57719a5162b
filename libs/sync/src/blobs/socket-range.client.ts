import { connect, type Socket } from 'node:net';
import type { RangeRequest, RangeSink } from './range.client.ts';

const bufferBytes = 1024 ** 2;
const mostHeadBytes = 64 * 1024;
const connectTimeoutMs = 10_000;
const mostIdle = 16;

/** The store frames its answer in a way that is left to undici: no length, or chunks. */
export class UnusualAnswer extends Error {}

interface Exchange {
  sink: RangeSink;
  resolve(): void;
  reject(error: Error): void;
}

interface Head {
  status: number;
  length: number;
  keep: boolean;
}

/** Status, length and whether the connection stays; undefined for a head that only announces another one. */
function readHead(text: string): Head | undefined {
  const [first = '', ...lines] = text.split('\r\n');
  const [, minor, code] = /^HTTP\/1\.(\d) (\d{3})/.exec(first) ?? [];
  if (code === undefined) throw new Error('the store did not answer in HTTP/1.1');
  if (code.startsWith('1')) return undefined;
  const fields = new Map(
    lines.map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const;
    }),
  );
  const length = Number(fields.get('content-length') ?? Number.NaN);
  if (fields.has('transfer-encoding') || !Number.isSafeInteger(length) || length < 0) throw new UnusualAnswer();
  const connection = fields.get('connection')?.toLowerCase() ?? '';
  const keep = minor === '1' ? !connection.includes('close') : connection.includes('keep-alive');
  return { status: Number(code), length, keep };
}

/** One connection that reads into one buffer for as long as it lives: what a pull takes does not become garbage. */
class RangeConnection {
  readonly socket: Socket;
  /** Whether anything came since the exchange began. */
  answered = false;
  used = false;
  private exchange: Exchange | undefined;
  private head: Head | undefined;
  private headBytes: Buffer[] = [];
  private left = 0;
  private idleTimeoutMs = connectTimeoutMs;

  constructor(host: string, port: number) {
    this.socket = connect({
      host,
      port,
      noDelay: true,
      onread: { buffer: Buffer.allocUnsafeSlow(bufferBytes), callback: (count, buffer) => this.take(count, buffer) },
    });
    this.socket.setTimeout(connectTimeoutMs);
    this.socket.on('timeout', () => this.socket.destroy(new Error('the store fell silent')));
    this.socket.on('error', (error) => this.fail(error));
    this.socket.on('close', () => this.fail(new Error('the store closed the connection')));
  }

  /** Resolves when the body has ended; then `reusable` says whether another exchange may follow. */
  run(request: RangeRequest, sink: RangeSink): Promise<void> {
    const { host, pathname, search } = new URL(request.url);
    const range = request.range === undefined ? '' : `range: ${request.range}\r\n`;
    this.answered = false;
    this.head = undefined;
    this.headBytes = [];
    const abort = () => this.socket.destroy(request.signal.reason as Error);
    const done = new Promise<void>((resolve, reject) => {
      this.exchange = { sink, resolve, reject };
    });
    request.signal.addEventListener('abort', abort, { once: true });
    if (request.signal.aborted) abort();
    this.socket.once('connect', () => this.socket.setTimeout(request.headersTimeoutMs));
    this.socket.setTimeout(
      this.socket.connecting ? Math.min(connectTimeoutMs, request.headersTimeoutMs) : request.headersTimeoutMs,
    );
    this.idleTimeoutMs = request.idleTimeoutMs;
    this.socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n${range}connection: keep-alive\r\n\r\n`);
    return done.finally(() => request.signal.removeEventListener('abort', abort));
  }

  get reusable(): boolean {
    return !this.socket.destroyed && this.head?.keep === true && this.left === 0;
  }

  private fail(error: Error): void {
    this.socket.destroy();
    const { exchange } = this;
    this.exchange = undefined;
    exchange?.reject(error);
  }

  /** False: no more until there is room. */
  private take(count: number, buffer: Uint8Array): boolean {
    try {
      return this.takeBytes(buffer.subarray(0, count));
    } catch (error) {
      this.fail(error as Error);
      return true;
    }
  }

  private takeBytes(bytes: Uint8Array): boolean {
    if (!this.exchange) throw new Error('the store sent what nobody asked for');
    this.answered = true;
    const body = this.head ? bytes : this.takeHead(bytes);
    if (!this.head) return true;
    const { sink } = this.exchange;
    if (body.length > this.left) throw new Error('the store sent more than it announced');
    this.left -= body.length;
    const more = body.length === 0 || sink.onChunk(body);
    if (this.left === 0) {
      this.end();
      return true;
    }
    if (!more) this.waitForRoom(sink);
    return more;
  }

  /** Returns what is behind the head. */
  private takeHead(bytes: Uint8Array): Uint8Array {
    this.headBytes.push(Buffer.from(bytes.subarray(0, mostHeadBytes)));
    const all = Buffer.concat(this.headBytes);
    const end = all.indexOf('\r\n\r\n');
    if (end < 0) {
      if (all.length >= mostHeadBytes) throw new Error('the head of the store’s answer does not end');
      return bytes.subarray(bytes.length);
    }
    const behind = end + 4 - (all.length - Math.min(bytes.length, mostHeadBytes));
    this.headBytes = [];
    this.head = readHead(all.toString('latin1', 0, end));
    const rest = bytes.subarray(behind);
    if (!this.head) return this.takeHead(rest);
    this.left = this.head.length;
    this.socket.setTimeout(this.idleTimeoutMs);
    this.exchange!.sink.onStatus(this.head.status);
    return rest;
  }

  private waitForRoom(sink: RangeSink): void {
    // While nobody takes them, no bytes are no silence of the store.
    this.socket.setTimeout(0);
    void sink.hasRoom().then(() => {
      this.socket.setTimeout(this.idleTimeoutMs);
      this.socket.resume();
    });
  }

  private end(): void {
    const { exchange } = this;
    this.exchange = undefined;
    this.used = true;
    this.socket.setTimeout(0);
    exchange!.resolve();
  }
}

/** GETs of ranges over plain HTTP without garbage: undici's chunks cost a collector more than their hash. */
export class SocketRangeClient {
  private readonly idle = new Map<string, RangeConnection[]>();
  private closed = false;

  /** As `requestRange`. Throws `UnusualAnswer` where that should be asked instead. */
  async request(request: RangeRequest, sink: RangeSink): Promise<void> {
    const { hostname, port, host } = new URL(request.url);
    for (;;) {
      const connection =
        this.idle.get(host)?.pop() ?? new RangeConnection(hostname.replace(/^\[|\]$/g, ''), Number(port || 80));
      const reused = connection.used;
      if (reused && connection.socket.destroyed) continue;
      try {
        await connection.run(request, sink);
        this.keep(host, connection);
        return;
      } catch (error) {
        connection.socket.destroy();
        // The store may close a connection that waits, just when it is used again.
        if (!reused || connection.answered || request.signal.aborted) throw error;
      }
    }
  }

  close(): void {
    this.closed = true;
    for (const connections of this.idle.values()) for (const { socket } of connections) socket.destroy();
    this.idle.clear();
  }

  private keep(host: string, connection: RangeConnection): void {
    const idle = this.idle.get(host) ?? [];
    this.idle.set(host, idle);
    if (this.closed || !connection.reusable || idle.length >= mostIdle) connection.socket.destroy();
    else idle.push(connection);
  }
}
