import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type HttpApplication,
  type HttpExchange,
  HttpServer,
  type ReplyStream,
} from '../../apps/router/src/http1/index.ts';
import { Wire } from '../support/wire.ts';

const until = async (holds: () => boolean, limitMs = 5_000): Promise<void> => {
  const deadline = Date.now() + limitMs;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('never came true');
    await new Promise((done) => setTimeout(done, 5));
  }
};
const plain = (body: string) => ({ status: 200, contentType: 'text/plain', headerLines: '', body });
const head = { status: 200, contentType: 'text/event-stream', headerLines: 'x-a: b\r\n' };

/** Streams what a test writes; `/plain` is answered at once. */
class Streaming implements HttpApplication {
  readonly streams: (ReplyStream | undefined)[] = [];
  readonly exchanges: HttpExchange[] = [];
  admit() {
    return 1_000_000;
  }
  tooLarge() {
    return plain('large');
  }
  answer(exchange: HttpExchange) {
    this.exchanges.push(exchange);
    if (exchange.head.path === '/plain') exchange.reply(plain('plain'));
    else this.streams.push(exchange.stream!(head));
  }
}

const post = (path: string, version = '1.1') => `POST ${path} HTTP/${version}\r\nHost: x\r\nContent-Length: 1\r\n\r\nb`;
const megabyte = 'x'.repeat(1_048_576);

describe('replies that are sent as they come about', () => {
  let app: Streaming;
  let server: HttpServer;
  let port: number;
  let wires: Wire[] = [];
  const open = (at = port) => {
    const wire = new Wire(at, 'utf8');
    wires.push(wire);
    return wire;
  };
  const begin = async (text = post('/s')) => {
    const count = app.streams.length;
    const wire = open();
    wire.socket.write(text);
    await until(() => app.streams.length > count);
    return { wire, stream: app.streams.at(-1)!, exchange: app.exchanges.at(-1)! };
  };

  beforeAll(async () => {
    app = new Streaming();
    server = new HttpServer({ application: app, stalledMs: 500 });
    port = await server.listen(0, '127.0.0.1');
  });
  afterEach(() => {
    for (const wire of wires) wire.socket.destroy();
    wires = [];
  });
  afterAll(() => server.close(0));

  it('sends the head at once, each piece as a chunk, and takes the next request behind the end', async () => {
    const { wire, stream } = await begin(post('/s') + post('/plain'));
    await until(() => wire.got.endsWith('\r\n\r\n'));
    expect(wire.got).toMatch(
      /^HTTP\/1\.1 200 OK\r\ncontent-type: text\/event-stream\r\ntransfer-encoding: chunked\r\nx-a: b\r\n/,
    );
    void stream.write('data: 1\n\n');
    await until(() => wire.body === '9\r\ndata: 1\n\n\r\n');
    void stream.write('é');
    stream.end();
    await until(() => wire.got.endsWith('plain'));
    expect(wire.body).toContain('2\r\né\r\n0\r\n\r\nHTTP/1.1 200 OK');
    expect(wire.ended).toBe(false);
  });

  it('reads as one body for a client of its own', async () => {
    const asked = fetch(`http://127.0.0.1:${port}/s`, { method: 'POST', body: 'b' });
    const count = app.streams.length;
    await until(() => app.streams.length > count);
    const stream = app.streams.at(-1)!;
    for (const piece of ['one ', 'two ', 'three']) void stream.write(piece);
    stream.end();
    expect(await (await asked).text()).toBe('one two three');
  });

  it('ends the connection where it is told to, after everything was sent', async () => {
    const { wire, stream } = await begin();
    void stream.write('event: error\n\n');
    stream.end(true);
    await until(() => wire.ended);
    expect(wire.body).toBe('e\r\nevent: error\n\n\r\n0\r\n\r\n');
  });

  it('sends HTTP/1.0 clients no chunks, and ends with the connection', async () => {
    const { wire, stream } = await begin(post('/s', '1.0'));
    void stream.write('data: 1\n\n');
    stream.end();
    await until(() => wire.ended);
    expect(wire.got).toContain('connection: close');
    expect(wire.got).not.toContain('chunked');
    expect(wire.body).toBe('data: 1\n\n');
  });

  it('makes its writer wait while the client does not read, and go on when it does', async () => {
    const { wire, stream } = await begin();
    wire.socket.pause();
    let pieces = 0;
    const writing = (async () => {
      for (; pieces < 40; pieces += 1) await stream.write(megabyte);
      stream.end();
    })();
    let seen = -1;
    // the kernel takes a few megabytes; then nothing moves
    await until(() => {
      const still = seen === pieces;
      seen = pieces;
      return still;
    });
    expect(pieces).toBeLessThan(30);
    wire.socket.resume();
    await writing;
    await until(() => wire.got.endsWith('0\r\n\r\n'));
    expect(wire.got.length).toBeGreaterThan(40 * megabyte.length);
  });

  it('refuses more from a writer that does not wait', async () => {
    const { wire, stream } = await begin();
    wire.socket.pause();
    const flood = () => {
      for (let i = 0; i < 64; i += 1) void stream.write(megabyte);
    };
    expect(flood).toThrow('wait for each ctx.stream');
  });

  it('gives up a client that takes nothing for too long', async () => {
    const { wire, stream, exchange } = await begin();
    wire.socket.pause();
    const writing = (async () => {
      for (;;) await stream.write(megabyte);
    })();
    await expect(writing).rejects.toMatchObject({ code: 'cancelled' });
    expect(exchange.cancelled).toBe(true);
  });

  it('tells its writer that the client went away', async () => {
    const { wire, stream, exchange } = await begin();
    const { signal } = exchange;
    wire.socket.destroy();
    await until(() => signal.aborted);
    expect(() => stream.write('x')).toThrow('the client went away');
    stream.end();
    const late = app.exchanges.at(-1)!;
    expect(late.stream!(head)).toBeUndefined();
  });

  it('waits for streams when it stops, and closes behind them', async () => {
    const stopping = new HttpServer({ application: app });
    const at = await stopping.listen(0, '127.0.0.1');
    const wire = open(at);
    const count = app.streams.length;
    wire.socket.write(post('/s'));
    await until(() => app.streams.length > count);
    let closed = false;
    const closing = stopping.close(10_000).then(() => (closed = true));
    await until(() => stopping.stopping);
    const stream = app.streams.at(-1)!;
    void stream.write('still here');
    await until(() => wire.got.includes('still here'));
    expect(closed).toBe(false);
    stream.end();
    await closing;
    await until(() => wire.ended);
    expect(wire.got.endsWith('0\r\n\r\n')).toBe(true);
  });
});
