import type { Socket } from 'node:net';
import { ChunkedBody } from '@perch/triton/inference';
import { readingSocket } from './client-socket.ts';
import { Exchange, type HttpApplication } from './http-exchange.ts';
import { ReplyStream } from './reply-stream.ts';
import { type HttpReply, headText, type StreamHead, streamHeadText, textReply } from './reply-text.ts';
import { HeadFault, parseRequestHead, type RequestHead } from './request-head.ts';

export interface ConnectionOwner {
  readonly application: HttpApplication;
  /** No further request is taken on any connection. */
  readonly stopping: boolean;
  closed(connection: HttpConnection): void;
}

const maxHeadBytes = 16_384;
/** Bytes a client may send ahead while its request is being answered. */
const maxAheadBytes = 65_536;
/** A body must bring this many bytes within the server's limit for it. */
const progressBytes = 16_384;
/** Below this an answer is copied into one buffer, which costs less than writing its parts apart. */
const joinBelowBytes = 16_384;
const continueText = 'HTTP/1.1 100 Continue\r\n\r\n';
const headEnd = Buffer.from('\r\n\r\n');

const startsWith = (bytes: Buffer, start: Buffer): boolean =>
  bytes.length >= start.length && bytes.compare(start, 0, start.length, 0, start.length) === 0;

/** One client's connection: head, body, answer, and again. Requests sent ahead wait their turn. */
export class HttpConnection {
  /** Since when it has been in its present phase; the server's sweep compares it with the phase's limit. */
  since = performance.now();
  phase: 'idle' | 'head' | 'body' | 'answer' | 'stalled' | 'closing' = 'idle';
  private socket!: Socket;
  private readonly owner: ConnectionOwner;
  private held: Buffer | undefined;
  private current: Exchange | undefined;
  private stream: ReplyStream | undefined;
  private chunks: ChunkedBody | undefined;
  private limitBytes = 0;
  private arrived = 0;
  /** A client's heads are mostly the same, byte for byte: then the last one is not parsed again. */
  private lastBytes: Buffer = headEnd;
  private lastHead: RequestHead | undefined;

  constructor(owner: ConnectionOwner) {
    this.owner = owner;
  }

  /** Takes an accepted, paused socket. */
  open(accepted: Socket): void {
    const socket = readingSocket(accepted, this.read);
    this.socket = socket;
    socket.on('end', () => this.gone());
    socket.on('error', () => this.gone());
    socket.on('close', () => {
      this.gone();
      this.owner.closed(this);
    });
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Sends the answer of the request in hand, and takes up what came meanwhile. */
  finish(exchange: Exchange, reply: HttpReply) {
    if (exchange !== this.current) return;
    const whole = this.phase === 'answer';
    const keepAlive = whole && exchange.head.keepAlive && !this.owner.stopping;
    this.write(reply, keepAlive, exchange.head.method === 'HEAD');
    this.answered(exchange, keepAlive);
  }

  /** Sends the head of an answer that comes piece by piece; undefined when its client has left. */
  beginStream(exchange: Exchange, head: StreamHead): ReplyStream | undefined {
    if (exchange !== this.current || this.phase !== 'answer' || this.stream) return undefined;
    const chunked = !exchange.head.http10;
    const keepAlive = chunked && exchange.head.keepAlive && !this.owner.stopping;
    this.socket.write(streamHeadText(head, chunked, keepAlive, Date.now()), 'latin1');
    this.stream = new ReplyStream(this, this.socket, chunked);
    return this.stream;
  }

  stalled(is: boolean): void {
    this.enter(is ? 'stalled' : 'answer');
  }

  streamed(close: boolean): void {
    const exchange = this.current!;
    this.stream = undefined;
    this.answered(exchange, !close && exchange.head.keepAlive && !this.owner.stopping);
  }

  private answered(exchange: Exchange, keepAlive: boolean) {
    this.current = undefined;
    this.chunks = undefined;
    if (exchange.recyclable) exchange.received.recycle();
    if (!keepAlive) return this.closeSoftly();
    this.enter('idle');
    if (this.socket.writableNeedDrain) this.socket.once('drain', () => this.resume());
    else if (this.held) setImmediate(() => this.resume()); // not at once: requests sent ahead would deepen the stack
  }

  private enter(phase: HttpConnection['phase']): void {
    this.phase = phase;
    this.since = performance.now();
  }

  private resume(): void {
    const bytes = this.held;
    if (!bytes || this.phase !== 'idle') return;
    this.held = undefined;
    if (this.socket.isPaused()) this.socket.resume();
    this.read(bytes);
  }

  /** `bytes` are valid during the call only. */
  private readonly read = (bytes: Buffer): void => {
    switch (this.phase) {
      case 'idle':
      case 'head':
        this.readHead(this.held ? Buffer.concat([this.held, bytes]) : bytes);
        return;
      case 'body':
        this.readBody(bytes);
        return;
      case 'answer':
      case 'stalled':
        this.holdAhead(bytes);
        return;
      case 'closing': // drained and dropped, so that the client can read our answer
        return;
    }
  };

  private holdAhead(bytes: Buffer): void {
    this.hold(this.held ? Buffer.concat([this.held, bytes]) : bytes);
    if (this.held!.length > maxAheadBytes) this.socket.pause();
  }

  private readHead(bytes: Buffer) {
    if (this.lastHead && startsWith(bytes, this.lastBytes))
      return this.begin(
        this.lastHead,
        this.lastBytes.length < bytes.length ? bytes.subarray(this.lastBytes.length) : undefined,
      );
    const end = bytes.indexOf(headEnd);
    if (end < 0 || end > maxHeadBytes) {
      if (bytes.length > maxHeadBytes) return this.refuse(new HeadFault(431, `head longer than ${maxHeadBytes} bytes`));
      this.hold(bytes);
      if (this.phase === 'idle') this.enter('head');
      return;
    }
    let head: RequestHead;
    try {
      head = parseRequestHead(bytes.toString('latin1', 0, end));
    } catch (error) {
      return this.refuse(error as HeadFault);
    }
    this.lastBytes = Buffer.from(bytes.subarray(0, end + 4));
    this.lastHead = head;
    this.begin(head, end + 4 < bytes.length ? bytes.subarray(end + 4) : undefined);
  }

  private begin(head: RequestHead, rest: Buffer | undefined) {
    this.held = undefined;
    const exchange = new Exchange(this, head);
    this.current = exchange;
    this.phase = 'body';
    const admitted = this.owner.application.admit(exchange);
    if (typeof admitted !== 'number') {
      const size = head.contentLength ?? Number.POSITIVE_INFINITY;
      if (size <= (rest?.length ?? 0)) {
        this.phase = 'answer'; // nothing of it left unread: the connection may go on
        this.hold(rest?.subarray(size));
      }
      return this.finish(exchange, admitted);
    }
    this.limitBytes = admitted;
    const { contentLength } = head;
    if (contentLength === 0) {
      this.hold(rest);
      return this.complete(exchange);
    }
    if (contentLength === undefined) this.chunks = new ChunkedBody();
    else if (contentLength > admitted)
      return this.finish(exchange, this.owner.application.tooLarge(exchange, admitted));
    this.since = exchange.startedAt;
    if (head.expectsContinue && !rest) this.socket.write(continueText, 'latin1');
    if (rest) this.readBody(rest);
  }

  private readBody(bytes: Buffer) {
    const exchange = this.current!;
    this.progress(bytes.length);
    if (this.chunks) return this.readChunks(exchange, this.chunks, bytes);
    const missing = exchange.head.contentLength! - exchange.received.size;
    exchange.received.append(bytes, 0, Math.min(missing, bytes.length));
    if (bytes.length > missing) this.hold(bytes.subarray(missing));
    if (bytes.length >= missing) this.complete(exchange);
  }

  /** A body that drips would hold a connection for ever: only so many bytes count as a sign of life. */
  private progress(bytes: number): void {
    this.arrived += bytes;
    if (this.arrived < progressBytes) return;
    this.arrived = 0;
    this.since = performance.now();
  }

  private readChunks(exchange: Exchange, chunks: ChunkedBody, bytes: Buffer) {
    let stopped: number;
    let total = exchange.received.size;
    try {
      stopped = chunks.take(bytes, 0, bytes.length, (from, to) => {
        total += to - from;
        if (total <= this.limitBytes) exchange.received.append(bytes, from, to);
      });
    } catch {
      return this.refuse(new HeadFault(400, 'the chunked body is malformed'));
    }
    if (total > this.limitBytes)
      return this.finish(exchange, this.owner.application.tooLarge(exchange, this.limitBytes));
    if (!chunks.done) return;
    if (stopped < bytes.length) this.hold(bytes.subarray(stopped));
    this.complete(exchange);
  }

  /** Keeps a copy of what came too early. */
  private hold(bytes: Buffer | undefined): void {
    this.held = bytes && bytes.length > 0 ? Buffer.from(bytes) : undefined;
  }

  private complete(exchange: Exchange): void {
    this.phase = 'answer';
    exchange.body = exchange.received.pieces();
    this.owner.application.answer(exchange);
  }

  private refuse(fault: HeadFault): void {
    this.current = undefined;
    this.write(textReply(fault.status, fault.message), false, false);
    this.closeSoftly();
  }

  private write(reply: HttpReply, keepAlive: boolean, headOnly: boolean): void {
    const { socket } = this;
    const { body } = reply;
    if (typeof body === 'string') {
      const head = headText(reply, Buffer.byteLength(body), keepAlive, Date.now());
      socket.write(headOnly ? head : head + body, 'utf8');
      return;
    }
    let size = 0;
    for (const part of body) size += part.length;
    const head = headText(reply, size, keepAlive, Date.now());
    if (headOnly || body.length === 0) {
      socket.write(head, 'latin1');
      return;
    }
    if (size < joinBelowBytes) {
      const whole = Buffer.allocUnsafe(head.length + size);
      let at = whole.write(head, 'latin1');
      for (const part of body) {
        whole.set(part, at);
        at += part.length;
      }
      socket.write(whole);
      return;
    }
    socket.cork();
    socket.write(head, 'latin1');
    for (const part of body) socket.write(part);
    socket.uncork();
  }

  /** Ends our side and goes on reading for a moment: closing with unread bytes would reset the answer away. */
  private closeSoftly(): void {
    this.enter('closing');
    this.held = undefined;
    this.socket.end();
    if (this.socket.isPaused()) this.socket.resume();
  }

  private gone(): void {
    const exchange = this.current;
    this.current = undefined;
    this.stream?.left();
    this.stream = undefined;
    exchange?.leave();
    if (this.phase !== 'closing') this.enter('closing');
  }
}
