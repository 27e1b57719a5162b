import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { ConnectionFault, HttpTransport } from '@perch/triton/inference';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type HttpApplication, type HttpExchange, HttpServer } from '../../apps/router/src/http1/index.ts';
import { Wire } from '../support/wire.ts';

const until = async (holds: () => boolean, limitMs = 5_000): Promise<void> => {
  const deadline = Date.now() + limitMs;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('never came true');
    await new Promise((done) => setTimeout(done, 5));
  }
};
const text = (status: number, body: string) => ({ status, contentType: 'text/plain', headerLines: '', body });

/** Answers with what it understood; `/slow` waits for `release`, `/refuse` is refused unread. */
class Echo implements HttpApplication {
  readonly exchanges: HttpExchange[] = [];
  private waiting: (() => void)[] = [];
  admit(exchange: HttpExchange) {
    return exchange.head.path === '/refuse' ? text(401, 'no') : 1_000_000;
  }
  tooLarge() {
    return text(413, 'large');
  }
  answer(exchange: HttpExchange) {
    this.exchanges.push(exchange);
    const { method, path } = exchange.head;
    const reply = () =>
      exchange.reply(text(200, `${method} ${path} [${Buffer.concat(exchange.body).toString('latin1')}]`));
    if (path === '/slow') this.waiting.push(reply);
    else reply();
  }
  release() {
    for (const reply of this.waiting.splice(0)) reply();
  }
}

describe('the router’s HTTP server', () => {
  const echo = new Echo();
  let server: HttpServer;
  let port: number;
  let wires: Wire[] = [];
  const open = () => {
    const wire = new Wire(port);
    wires.push(wire);
    return wire;
  };
  beforeAll(async () => {
    server = new HttpServer({ application: echo, headMs: 300, bodyMs: 300, idleMs: 60_000 });
    port = await server.listen(0, '127.0.0.1');
  });
  afterEach(() => {
    for (const wire of wires) wire.socket.destroy();
    wires = [];
  });
  afterAll(() => server.close(0));

  it('goes on taking and answering connections for a moment after the word to stop, telling each to close', async () => {
    const stopping = new HttpServer({ application: echo, stopDelayMs: 2_000 });
    const at = await stopping.listen(0, '127.0.0.1');
    const dial = () => {
      const wire = new Wire(at);
      wires.push(wire);
      return wire;
    };
    const get = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\n';
    const kept = dial();
    kept.socket.write(get);
    await until(() => kept.statuses.length === 1);
    const closed = stopping.close(5_000);
    const fresh = dial();
    fresh.socket.write(get);
    kept.socket.write(get);
    await until(() => fresh.ended && kept.ended);
    expect(fresh.statuses).toEqual([200]);
    expect(kept.statuses).toEqual([200, 200]);
    for (const { got } of [fresh, kept]) expect(got).toContain('connection: close');
    await closed;
    const late = dial();
    await until(() => late.ended);
    expect(late.got).toBe('');
  });

  it('answers requests sent ahead in their order, a thousand of them', async () => {
    const wire = open();
    const one = (i: number) => `POST /n${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n${i % 10}`;
    wire.socket.write(Array.from({ length: 1_000 }, (_, i) => one(i)).join(''));
    await until(() => wire.statuses.length === 1_000);
    const seen = [...wire.got.matchAll(/POST \/n(\d+) \[(\d)\]/g)].map((match) => [Number(match[1]), Number(match[2])]);
    expect(seen).toEqual(Array.from({ length: 1_000 }, (_, i) => [i, i % 10]));
  });

  it('reads the same whatever pieces a request comes in', async () => {
    const body = 'hello chunks';
    const sent = `POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7\r\n chunks\r\n0\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nend`;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(sent.length), { maxLength: 5 }), async (cuts) => {
        const wire = open();
        const edges = [0, ...cuts.sort((a, b) => a - b), sent.length];
        for (let i = 1; i < edges.length; i += 1) {
          wire.socket.write(sent.slice(edges[i - 1], edges[i]));
          await new Promise((done) => setImmediate(done));
        }
        await until(() => wire.got.includes('[end]'));
        expect(wire.got).toContain(`POST /a [${body}]`);
        wire.socket.destroy();
      }),
      { numRuns: 25 },
    );
  });

  it('takes a body it is asked to expect', async () => {
    const wire = open();
    wire.socket.write('POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n');
    await until(() => wire.got.includes('100 Continue'));
    wire.socket.write('ok');
    await until(() => wire.got.includes('[ok]'));
  });

  it.each([
    ['a body announced too large', 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000001\r\n\r\n', 413],
    ['a refused one, unread', 'POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n', 401],
    [
      'a smuggled one',
      'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['a broken chunk', 'POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
    ['an endless head', `GET /a HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}`, 431],
    ['noise', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400],
  ])('answers %s once and closes', async (_what, bytes, status) => {
    const wire = open();
    wire.socket.write(bytes, 'latin1');
    await until(() => wire.ended);
    expect(wire.statuses).toEqual([status]);
    expect(wire.got).toContain('connection: close');
  });

  it('keeps the connection after refusing a request whose body was there already', async () => {
    const wire = open();
    wire.socket.write(
      'POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    await until(() => wire.statuses.length === 2);
    expect(wire.statuses).toEqual([401, 200]);
  });

  it('does not wait for ever for a head or a body', async () => {
    const [head, body] = [open(), open()];
    head.socket.write('GET /a HT');
    body.socket.write('POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc');
    await until(() => head.ended && body.ended);
    expect(head.got + body.got).toBe('');
  });

  it('tells the application when the client goes away', async () => {
    const wire = open();
    wire.socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => echo.exchanges.at(-1)?.head.path === '/slow');
    const exchange = echo.exchanges.at(-1)!;
    let cancelled = false;
    exchange.onCancel = () => {
      cancelled = true;
    };
    const { signal } = exchange;
    wire.socket.destroy();
    await until(() => cancelled);
    expect([exchange.cancelled, signal.aborted]).toEqual([true, true]);
    echo.release();
  });

  it('answers HEAD without a body, and HTTP/1.0 by closing', async () => {
    const [head, old] = [open(), open()];
    head.socket.write('HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    old.socket.write('GET /a HTTP/1.0\r\n\r\n');
    await until(() => head.ended && old.ended);
    expect(head.got).toMatch(/content-length: 10\r\n[\s\S]*\r\n\r\n$/);
    expect(old.got).toContain('GET /a []');
  });

  it('agrees with Node’s own parser on every request that it takes', async () => {
    const seen: string[] = [];
    let compared = 0;
    const node = createHttpServer(async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      seen.push(`${request.method} ${request.url} [${Buffer.concat(pieces).toString('latin1')}]`);
      response.end();
    });
    node.on('clientError', (_error, socket) => socket.destroy());
    await new Promise<void>((done) => node.listen(0, '127.0.0.1', done));
    const nodePort = (node.address() as { port: number }).port;
    const piece = fc.constantFrom(
      'Content-Length: 3', 'Content-Length: 5', 'Content-Length: 03', 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity', 'A: b', 'a : b', ' c', 'Content-Length:3 ', 'Host: y', 'X: \x80', 'Connection: close',
    ); // biome-ignore format: one list
    const request = fc.tuple(
      fc.constantFrom('POST', 'GET', 'PUT'),
      fc.array(piece, { maxLength: 3 }),
      fc.constantFrom('abc', '3\r\nabc\r\n0\r\n\r\n', '', 'abcde'),
      fc.constantFrom('\r\n', '\r\n', '\r\n', '\n'),
    );
    await fc.assert(
      fc.asyncProperty(request, async ([method, lines, body, end]) => {
        const bytes = Buffer.from([`${method} /p HTTP/1.1`, 'Host: x', ...lines, '', body].join(end), 'latin1');
        const ours = open();
        ours.socket.write(bytes);
        await new Promise((done) => setTimeout(done, 15));
        const first = /HTTP\/1\.1 200 [\s\S]*?\r\n\r\n(\w+ \/p \[[^\]]*\])/.exec(ours.got)?.[1];
        ours.socket.destroy();
        if (!first) return;
        compared += 1;
        seen.length = 0;
        const theirs = connect(nodePort, '127.0.0.1');
        theirs.on('error', () => undefined);
        theirs.write(bytes);
        await until(() => seen.length > 0, 2_000);
        theirs.destroy();
        expect(seen[0]).toBe(first);
      }),
      { numRuns: 150 },
    );
    expect(compared).toBeGreaterThan(20);
    node.closeAllConnections();
    await new Promise((done) => node.close(done));
  });
});

describe('the HTTP way to a model server, against servers that misbehave', () => {
  const sockets = new Set<Socket>();
  const transport = new HttpTransport({ maxConnections: 2 });
  let served = 0;
  /** Answers request n of all connections with `script(n)`. */
  const serve = async (script: (n: number, socket: Socket) => void): Promise<{ http: string; grpc: string }> => {
    served = 0;
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', () => script(served++, socket));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    server.unref();
    const at = `127.0.0.1:${(server.address() as { port: number }).port}`;
    return { http: at, grpc: at };
  };
  const infer = (server: { http: string; grpc: string }, timeoutMs = 2_000) =>
    transport.infer(server, { modelName: 'm', inputs: [] }, { timeoutMs });
  const json = '{"model_name":"m","model_version":"1","outputs":[]}';
  const good = `HTTP/1.1 200 OK\r\nContent-Length: ${json.length}\r\n\r\n${json}`;
  afterAll(async () => {
    await transport.close();
    for (const socket of sockets) socket.destroy();
  });

  it('uses a connection again, also after a failed request', async () => {
    const server = await serve((n, socket) =>
      socket.write(n === 1 ? 'HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}' : good),
    );
    sockets.clear();
    await infer(server);
    await expect(infer(server)).rejects.toMatchObject({ kind: 'input' });
    await infer(server);
    expect([served, sockets.size]).toEqual([3, 1]);
  });

  it('opens another when the server closed the one it kept', async () => {
    const server = await serve((_n, socket) => socket.end(good));
    for (let i = 0; i < 20; i += 1) {
      await infer(server).catch((error) => {
        // the close may cross the next request on the wire: then it is said that nothing of a reply was seen
        expect(error).toBeInstanceOf(ConnectionFault);
        expect(error.reached).toBe('sent');
      });
    }
  });

  it.each([
    ['nothing', (socket: Socket) => socket.destroy(), 'sent'],
    ['half a head', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'), 'reply'],
    ['half a body', (socket: Socket) => socket.end(good.slice(0, -5)), 'reply'],
    ['noise', (socket: Socket) => socket.write('hello\r\n\r\n'), 'reply'],
    ['more than it said', (socket: Socket) => socket.write(`${good}x`), 'reply'],
  ])('tells %s for a reply apart', async (_what, act, reached) => {
    const server = await serve((_n, socket) => void act(socket));
    await expect(infer(server)).rejects.toMatchObject({ kind: 'connection', reached });
  });

  it('lets requests beyond the limit of connections wait for one, within their time', async () => {
    const replies: (() => void)[] = [];
    const server = await serve((_n, socket) => void replies.push(() => socket.write(good)));
    const works = Array.from({ length: 5 }, () => infer(server));
    const late = infer(server, 100);
    await expect(late).rejects.toMatchObject({ kind: 'connection', reached: 'nothing' });
    while (served < 5 || replies.length > 0) {
      await until(() => replies.length > 0);
      replies.shift()!();
    }
    await Promise.all(works);
  });
});
