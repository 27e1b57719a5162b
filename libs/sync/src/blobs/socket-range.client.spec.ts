import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RangeSink, requestRange } from './range.client.ts';
import { SocketRangeClient, UnusualAnswer } from './socket-range.client.ts';

class Sink implements RangeSink {
  status = 0;
  readonly chunks: Buffer[] = [];
  full = false;
  release: () => void = () => undefined;

  onStatus(status: number): void {
    this.status = status;
  }
  onChunk(chunk: Uint8Array): boolean {
    this.chunks.push(Buffer.from(chunk));
    return !this.full;
  }
  hasRoom(): Promise<void> {
    return new Promise((resolve) => {
      this.release = resolve;
    });
  }
  get body(): Buffer {
    return Buffer.concat(this.chunks);
  }
}

describe('SocketRangeClient', () => {
  let server: Server;
  let client: SocketRangeClient;
  const heads: string[] = [];
  const sockets: Socket[] = [];
  /** Writes the answer to each request. */
  let answer: (socket: Socket, head: string) => void;
  beforeEach(async () => {
    heads.length = 0;
    sockets.length = 0;
    client = new SocketRangeClient();
    server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (head) => {
        heads.push(head.toString());
        answer(socket, head.toString());
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    client.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  const dispatcher = new Agent();
  const request = (over: Record<string, unknown> = {}) => ({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/blob?sig=a%2Fb`,
    range: 'bytes=0-3' as string | undefined,
    dispatcher,
    headersTimeoutMs: 500,
    idleTimeoutMs: 200,
    signal: new AbortController().signal,
    ...over,
  });
  const fixed =
    (body: Buffer | string, extra = '') =>
    (socket: Socket) => {
      socket.write(`HTTP/1.1 206 Partial Content\r\nContent-Length: ${body.length}\r\n${extra}\r\n`);
      socket.write(body);
    };

  it('asks as it should, takes the body, and uses the connection again', async () => {
    answer = fixed('abcd');
    for (let n = 0; n < 3; n += 1) {
      const sink = new Sink();
      await client.request(request(), sink);
      expect([sink.status, sink.body.toString()]).toEqual([206, 'abcd']);
    }
    expect(sockets).toHaveLength(1);
    expect(heads[0]).toMatch(/^GET \/blob\?sig=a%2Fb HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\nrange: bytes=0-3\r\n/);
  });

  it('reads a head and a body cut anywhere, and one that is announced first', async () => {
    const text = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 6\r\n\r\nabcdef';
    for (let cut = 1; cut < text.length; cut += 7) {
      answer = (socket) => {
        socket.setNoDelay(true);
        socket.write(text.slice(0, cut));
        setTimeout(() => socket.write(text.slice(cut)), 2);
      };
      const sink = new Sink();
      await client.request(request(), sink);
      expect(sink.body.toString()).toBe('abcdef');
    }
  });

  it('brings large bodies whole, and waits while there is no room', async () => {
    const body = randomBytes(8 * 1024 ** 2);
    answer = fixed(body);
    const sink = new Sink();
    sink.full = true;
    const done = client.request(request(), sink);
    const pump = setInterval(() => sink.release(), 1);
    await done;
    clearInterval(pump);
    expect(sink.body.equals(body)).toBe(true);
  });

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['ends early', (socket) => socket.end('HTTP/1.1 206 P\r\nContent-Length: 9\r\n\r\nabc'), /closed the connection/],
    ['falls silent', (socket) => void socket.write('HTTP/1.1 206 P\r\nContent-Length: 9\r\n\r\nabc'), /fell silent/],
    ['does not answer', () => undefined, /fell silent/],
    ['sends more than it said', fixed('abcd', 'Content-Length: 2\r\n'), /more than it announced/],
    ['speaks something else', (socket) => void socket.write('SSH-2.0-x\r\n\r\n'), /HTTP\/1\.1/],
  ])('fails when the store %s', async (_, behave, words) => {
    answer = behave;
    await expect(client.request(request(), new Sink())).rejects.toThrow(words);
  });

  it('leaves answers without a length to undici', async () => {
    answer = (socket) =>
      void socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n');
    await expect(client.request(request(), new Sink())).rejects.toBeInstanceOf(UnusualAnswer);
    const sink = new Sink();
    await requestRange(request(), sink);
    expect(sink.body.toString()).toBe('abcd');
  });

  it('tries once more when a connection that waited was closed just then', async () => {
    answer = fixed('abcd');
    await client.request(request(), new Sink());
    answer = (socket) => {
      if (socket === sockets[0]) socket.destroy();
      else fixed('efgh')(socket);
    };
    const sink = new Sink();
    await client.request(request(), sink);
    expect(sink.body.toString()).toBe('efgh');
    expect(sockets).toHaveLength(2);
  });

  it('ends when it is called off, and passes on what the sink throws', async () => {
    answer = (socket) => void socket.write('HTTP/1.1 206 P\r\nContent-Length: 9\r\n\r\nabc');
    const stop = new AbortController();
    const done = client.request(request({ signal: stop.signal, idleTimeoutMs: 60_000 }), new Sink());
    setTimeout(() => stop.abort(new Error('called off')), 20);
    await expect(done).rejects.toThrow('called off');
    const sink = new Sink();
    sink.onStatus = () => {
      throw new Error('not wanted');
    };
    await expect(client.request(request(), sink)).rejects.toThrow('not wanted');
  });
});
