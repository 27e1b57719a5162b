import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FaultProxy } from '../support/fault-proxy.ts';
import { reservePorts } from '../support/ports.ts';

const closed = (client: Socket) => new Promise((done) => client.once('close', done));

describe('the fault proxy of the chaos suite', () => {
  let echo: Server;
  let proxy: FaultProxy;
  const clients: Socket[] = [];
  beforeAll(async () => {
    echo = createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => undefined).pipe(socket));
    await new Promise<void>((done) => echo.listen(0, '127.0.0.1', done));
  });
  afterAll(() => echo.close());
  beforeEach(async () => {
    proxy = await FaultProxy.start('echo', () => [`127.0.0.1:${(echo.address() as AddressInfo).port}`]);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await proxy.close();
  });

  const open = async () => {
    const port = Number(proxy.address.split(':')[1]);
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    clients.push(client);
    client.on('error', () => undefined);
    await once(client, 'connect');
    return client;
  };
  const ask = async (client: Socket, text: string) => {
    let got = '';
    const took = performance.now();
    client.write(text);
    while (got.length < text.length) got += (await once(client, 'data'))[0];
    return { got, ms: performance.now() - took };
  };

  it('passes bytes of any size both ways, and the end of each way', async () => {
    const client = await open();
    const big = 'x'.repeat(3_000_000);
    expect((await ask(client, big)).got).toBe(big);
    client.end('last');
    let rest = '';
    client.on('data', (chunk) => (rest += chunk));
    await once(client, 'end');
    expect(rest).toBe('last');
  });

  it('cut: open connections are reset, new ones refused; then all is as before', async () => {
    const client = await open();
    await ask(client, 'hello');
    const gone = closed(client);
    await proxy.set({ kind: 'cut' });
    await gone;
    await expect(open()).rejects.toThrow('ECONNREFUSED');
    await proxy.set({ kind: 'pass' });
    expect((await ask(await open(), 'again')).got).toBe('again');
  });

  it('slow: each piece waits; in order', async () => {
    const client = await open();
    await proxy.set({ kind: 'slow', delayMs: 100, bytesPerSecond: 1_000_000 });
    const { got, ms } = await ask(client, 'hello');
    expect(got).toBe('hello');
    expect(ms).toBeGreaterThan(190); // there and back
  });

  it('hole: nothing arrives, old and new connections go on when it ends, nothing is lost', async () => {
    const old = await open();
    await ask(old, 'hello');
    await proxy.set({ kind: 'hole' });
    const fresh = await open();
    const answers = Promise.all([ask(old, 'one'), ask(fresh, 'two')]);
    const early = await Promise.race([answers, new Promise((done) => setTimeout(done, 300, 'nothing'))]);
    expect(early).toBe('nothing');
    await proxy.set({ kind: 'pass' });
    expect((await answers).map(({ got }) => got)).toEqual(['one', 'two']);
  });

  it('a target that listens no more: refused, until it listens again', async () => {
    const [port] = await reservePorts(1);
    const link = await FaultProxy.start('dead', () => [`127.0.0.1:${port}`]);
    const at = Number(link.address.split(':')[1]);
    const first = connect(at, '127.0.0.1');
    first.on('error', () => undefined);
    await closed(first);
    const refusal = () =>
      new Promise((done) =>
        connect(at, '127.0.0.1', function (this: Socket) {
          this.destroy();
          done('taken');
        }).on('error', (error: NodeJS.ErrnoException) => done(error.code)),
      );
    await expect.poll(refusal).toBe('ECONNREFUSED');
    const late = createServer((socket) => socket.destroy());
    await new Promise<void>((done) => late.listen(port, '127.0.0.1', done));
    await expect.poll(refusal).toBe('taken');
    late.close();
    await link.close();
  });
});
