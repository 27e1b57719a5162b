import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route } from '../../bench/control-stub.mjs';
import { moduleOf } from '../../bench/modules.mjs';
import { testCertificate, testCertificateKey } from '../support/certificate.ts';
import { floats } from '../support/onnx.ts';
import { type ModelServer, startEngine } from '../support/real-triton.ts';
import { loadScale, RouterStand, scaleTarget } from './router-stand.ts';

const rows = JSON.stringify({ x: [[1, 2, 3, 4]] });
const post = (path: string, body: string | Buffer, headers = '') =>
  Buffer.concat([
    Buffer.from(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n`),
    Buffer.from(body),
  ]);

/** Answers one, two, … as events. */
const counting = `
  async process({ to }, _state, ctx) {
    for (let n = 1; n <= to; n += 1) await ctx.stream({ n, more: ' '.repeat(20_000) });
    return { to };
  },`;

describe.each([1, 2])('the router’s listener with TLS, %s process(es)', (workers) => {
  let engine: ModelServer;
  let stand: RouterStand;
  let folder: string;
  let port: number;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-tls-'));
    await writeFile(join(folder, 'cert.pem'), testCertificate);
    await writeFile(join(folder, 'key.pem'), testCertificateKey);
    engine = await startEngine();
    await loadScale(engine, 'scale-v2', 2);
    stand = await RouterStand.start({
      PERCH_TLS_CERT: join(folder, 'cert.pem'),
      PERCH_TLS_KEY: join(folder, 'key.pem'),
      PERCH_WORKERS: String(workers),
    });
    port = Number(new URL(stand.router.address).port);
    const servers = { a: { http: engine.http, grpc: engine.grpc } };
    const processing = { module: moduleOf(stand.control, 'test/count', 1, counting), options: {} };
    const count = { ...scaleTarget(2, ['a']), deployment: 'count', processing };
    await stand.publish({ servers, endpoints: { scale: route([scaleTarget(2, ['a'])]), count: route([count]) } });
  });
  afterAll(async () => {
    await stand?.stop();
    await engine?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  const open = (options: object = {}): Promise<TLSSocket> =>
    new Promise((done, fail) => {
      const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: testCertificate, ...options });
      socket.once('secureConnect', () => done(socket)).once('error', fail);
    });
  /** All that comes until `count` replies are complete or the connection ends. */
  const replies = (socket: Socket, count: number): Promise<string> =>
    new Promise((done, fail) => {
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
        if (text.split('HTTP/1.1 ').length - 1 >= count && (text.match(/\]\]?\}/g)?.length ?? 0) >= count) done(text);
      });
      socket.once('end', () => done(text)).once('error', fail);
      socket.setTimeout(20_000, () => fail(new Error(`no answer: ${text}`)));
    });

  it('says https, and answers over a connection that is checked', async () => {
    expect(stand.router.address).toMatch(/^https:/);
    const socket = await open();
    expect([socket.authorized, socket.getProtocol()]).toEqual([true, 'TLSv1.3']);
    socket.write(post('/serve/scale', rows));
    const text = await replies(socket, 1);
    expect(text).toMatch(/^HTTP\/1.1 200 /);
    expect(text).toContain('{"y":[[2,4,6,8]]}');
    socket.destroy();
  });

  it('keeps the connection: 200 requests sent ahead are answered in their order', async () => {
    const socket = await open();
    const bodies = Array.from({ length: 200 }, (_, i) => JSON.stringify({ x: [[i, i, i, i]] }));
    socket.write(Buffer.concat(bodies.map((body) => post('/serve/scale', body))));
    const text = await replies(socket, 200);
    const values = [...text.matchAll(/\{"y":\[\[(\d+),/g)].map((one) => Number(one[1]));
    expect(values).toEqual(bodies.map((_, i) => 2 * i));
    socket.destroy();
  });

  it('takes a body of megabytes in pieces, and a binary tensor', async () => {
    const big = `{"x":[[1,2,3,4]]${' '.repeat(3_000_000)}}`;
    const one = await open();
    const bytes = post('/serve/scale', big);
    for (let at = 0; at < bytes.length; at += 100_001) one.write(bytes.subarray(at, at + 100_001));
    expect(await replies(one, 1)).toMatch(/^HTTP\/1.1 200 /);
    one.destroy();
    const json = JSON.stringify({
      inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], parameters: { binary_data_size: 16 } }],
    });
    const two = await open();
    const head = `Inference-Header-Content-Length: ${json.length}\r\n`;
    two.write(post('/v2/models/scale/infer', Buffer.concat([Buffer.from(json), floats(1, 2, 3, 4)]), head));
    const text = await replies(two, 1);
    expect(text).toMatch(/^HTTP\/1.1 200 /);
    expect(text).toContain('"data":[2,4,6,8]');
    two.destroy();
  });

  it('sends a module’s events as they come, and keeps the connection', async () => {
    const one = await open();
    const text = async (body: object) => {
      let all = '';
      one.on('data', (bytes) => (all += bytes.toString('latin1')));
      one.write(post('/serve/count', JSON.stringify(body), 'Accept: text/event-stream\r\n'));
      await expect.poll(() => all, { timeout: 20_000 }).toMatch(/\r\n0\r\n\r\n$/);
      one.removeAllListeners('data');
      return all;
    };
    for (const to of [3, 200]) {
      const events = await text({ to });
      expect(events).toMatch(/^HTTP\/1.1 200 [\s\S]*\r\ncontent-type: text\/event-stream/);
      expect([...events.matchAll(/data: \{"n":(\d+),/g)].map(([, n]) => Number(n))).toEqual(
        Array.from({ length: to }, (_, at) => at + 1),
      );
      expect(events).toContain(`data: {"to":${to}}`);
    }
    one.destroy();
  });

  it.each([
    ['plain HTTP', () => connect(port, '127.0.0.1', function (this: Socket) { this.write(post('/serve/scale', rows)); })], // biome-ignore format: one row
    ['noise', () => connect(port, '127.0.0.1', function (this: Socket) { this.write(Buffer.alloc(500, 7)); })], // biome-ignore format: one row
  ])('closes on %s and goes on', async (_what, dial) => {
    const socket = dial();
    const text = await new Promise<string>((done) => {
      let all = '';
      socket.on('data', (bytes) => (all += bytes.toString('latin1')));
      socket.once('close', () => done(all)).on('error', () => undefined);
    });
    expect(text).not.toContain('HTTP/1.1 200');
    const good = await open();
    good.write(post('/serve/scale', rows));
    expect(await replies(good, 1)).toMatch(/^HTTP\/1.1 200 /);
    good.destroy();
  });

  it('refuses TLS 1.1', async () => {
    await expect(open({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })).rejects.toThrow();
  });

  it('ends the call to the model server when the client leaves', async () => {
    process.kill(engine.pid, 'SIGSTOP');
    try {
      const socket = await open();
      socket.write(post('/serve/scale', rows));
      await inFlight(1);
      socket.destroy();
      await inFlight(0);
    } finally {
      process.kill(engine.pid, 'SIGCONT');
    }
  });

  async function inFlight(count: number): Promise<void> {
    const deadline = Date.now() + 10_000;
    for (;;) {
      const socket = await open();
      socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      let text = '';
      socket.on('data', (bytes) => (text += bytes.toString()));
      await new Promise((done) => socket.once('end', done));
      if (new RegExp(`^perch_router_requests_in_flight ${count}$`, 'm').test(text)) return;
      if (Date.now() > deadline) throw new Error(`never ${count} in flight`);
    }
  }
});
