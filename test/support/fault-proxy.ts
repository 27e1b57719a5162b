import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { reservePorts } from './ports.ts';

/** What a link does to the bytes on it. `hole`: connections stay and nothing arrives, as when packets are dropped. */
export type LinkMode =
  | { kind: 'pass' }
  | { kind: 'cut' }
  | { kind: 'slow'; delayMs: number; bytesPerSecond: number }
  | { kind: 'hole' };

const pieceBytes = 16 * 1024;

/** A PING frame of HTTP/2 and nothing else: Triton measures an open connection with them, long after the last call. */
const isPing = (chunk: Buffer) => chunk.length === 17 && chunk[2] === 8 && chunk[3] === 6;

/**
 * One link between two programs: a TCP proxy on an address of its own that can be cut, slowed down and black-holed while
 * connections are open. Several targets are taken in turn, as a load balancer would.
 */
export class FaultProxy {
  mode: LinkMode = { kind: 'pass' };
  /** When somebody sent bytes into it last (Unix ms), answers to HTTP/2 pings apart; 0: never. */
  lastSentAtMs = 0;
  private server: Server | undefined;
  private readonly pairs = new Set<readonly [Socket, Socket]>();
  private readonly clients = new Set<Socket>();
  private turn = 0;
  private closed = false;
  private opened!: Promise<void>;
  private open!: () => void;

  private constructor(
    readonly name: string,
    /** `host:port` each; asked for every connection. */
    private readonly targets: () => string[],
    private readonly port: number,
  ) {
    this.reopen();
  }

  static async start(name: string, targets: () => string[]): Promise<FaultProxy> {
    const [port] = await reservePorts(1);
    const proxy = new FaultProxy(name, targets, port!);
    await proxy.listen();
    return proxy;
  }

  /** `host:port` for whoever uses the link. */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }
  get connections(): number {
    return this.pairs.size;
  }

  async set(mode: LinkMode): Promise<void> {
    this.mode = mode;
    if (mode.kind === 'cut') {
      this.resetAll();
      await this.unlisten();
      return;
    }
    await this.listen();
    if (mode.kind === 'hole') this.opened = new Promise((done) => (this.open = done));
    else this.open();
  }

  /** Resets every open connection once; new ones are taken. */
  resetAll(): void {
    for (const client of this.clients) client.resetAndDestroy();
    for (const [client, target] of this.pairs) {
      client.resetAndDestroy();
      target.resetAndDestroy();
    }
    this.pairs.clear();
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.set({ kind: 'cut' });
    this.open();
  }

  private reopen(): void {
    this.opened = Promise.resolve();
    this.open = () => undefined;
  }

  private async listen(): Promise<void> {
    if (this.server || this.closed) return;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => void this.take(client));
    this.server = server;
    await new Promise<void>((done, fail) => server.once('error', fail).listen(this.port, '127.0.0.1', done));
  }

  /** Nobody listens behind it: nobody listens here either, so that clients can tell this from a lost connection. */
  private async refuseWhileTargetDoes(): Promise<void> {
    if (!this.server) return;
    await this.unlisten();
    while (this.mode.kind === 'pass' || this.mode.kind === 'slow') {
      if (await Promise.race(this.targets().map(accepts))) return this.listen();
      await pause(20);
    }
  }

  private async unlisten(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server) await new Promise((done) => server.close(done));
  }

  private async take(client: Socket): Promise<void> {
    client.on('error', () => undefined).once('close', () => this.clients.delete(client));
    this.clients.add(client);
    await this.opened;
    if (client.destroyed) return;
    const targets = this.targets();
    const target = connect({ ...split(targets[this.turn++ % targets.length]!), allowHalfOpen: true, noDelay: true });
    const pair = [client, target] as const;
    this.pairs.add(pair);
    target.on('error', (error: NodeJS.ErrnoException) => {
      client.resetAndDestroy();
      if (error.code === 'ECONNREFUSED') void this.refuseWhileTargetDoes();
    });
    client.on('error', () => target.resetAndDestroy());
    for (const socket of pair)
      socket.once('close', () => {
        this.pairs.delete(pair);
        for (const other of pair) if (!other.destroyed && other.readableEnded) other.destroy();
      });
    client.on('data', (chunk: Buffer) => {
      if (!isPing(chunk)) this.lastSentAtMs = Date.now();
    });
    this.pump(client, target);
    this.pump(target, client);
  }

  /** Bytes in order, one chunk at a time, each through the mode that is on when it comes. */
  private pump(from: Socket, to: Socket): void {
    from.on('data', (chunk: Buffer) => {
      if (this.mode.kind === 'pass' && to.write(chunk)) return;
      from.pause();
      void this.carry(chunk, to).then(() => from.resume());
    });
    from.once('end', () => void this.opened.then(() => to.end()));
    from.once('close', (hadError) => hadError && !to.destroyed && to.resetAndDestroy());
  }

  private async carry(chunk: Buffer, to: Socket): Promise<void> {
    if (this.mode.kind === 'pass') return drained(to); // written already, and the buffer is full
    await this.opened;
    for (let at = 0; at < chunk.length && !to.destroyed; at += pieceBytes) {
      const piece = chunk.subarray(at, at + pieceBytes);
      const { mode } = this;
      if (mode.kind === 'slow') await pause(mode.delayMs + (piece.length / mode.bytesPerSecond) * 1_000);
      await this.opened;
      if (!to.destroyed && !to.write(piece)) await drained(to);
    }
  }
}

function drained(socket: Socket): Promise<void> {
  if (socket.destroyed || !socket.writableNeedDrain) return Promise.resolve();
  return new Promise((done) => {
    const end = () => {
      socket.off('drain', end).off('close', end);
      done();
    };
    socket.once('drain', end).once('close', end);
  });
}

function accepts(address: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(split(address), () => {
      socket.destroy();
      done(true);
    });
    socket.on('error', () => done(false));
  });
}

function split(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
}
