import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { route } from '../../bench/control-stub.mjs';
import { type ModelServer, startEngine } from '../support/real-triton.ts';
import { ClosedLoad, loadScale, RouterStand, scaleTarget, unload } from './router-stand.ts';

const rows = { x: [[1, 2, 3, 4]] };
const until = async (holds: () => boolean | Promise<boolean>, what: string, limitMs = 15_000): Promise<void> => {
  const deadline = Date.now() + limitMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`never came true: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
};

describe('the router while things change and fail', () => {
  let first: ModelServer;
  let second: ModelServer;
  let stand: RouterStand;
  const at = ({ http, grpc }: ModelServer) => ({ http, grpc });
  const servers = () => ({ a: at(first), b: at(second) });
  const serve = () => stand.post('/serve/scale', rows);
  const loads: ClosedLoad[] = [];
  const startLoad = (workers: number): ClosedLoad => {
    const load = new ClosedLoad(workers, serve);
    loads.push(load);
    return load;
  };

  const metrics = async () => (await stand.send('/metrics')).text;
  const inFlightOf = (text: string) => Number(/^perch_router_requests_in_flight (\d+)$/m.exec(text)?.[1]);

  beforeAll(async () => {
    [first, second] = await Promise.all([startEngine(), startEngine()]);
    for (const server of [first, second])
      for (const version of [1, 2, 3]) await loadScale(server, `scale-v${version}`, version);
  });
  afterAll(async () => {
    await Promise.all([first?.remove(), second?.remove()]);
  });
  beforeEach(async () => {
    stand = await RouterStand.start();
  });
  afterEach(async () => {
    process.kill(first.pid, 'SIGCONT');
    await Promise.all(loads.splice(0).map((load) => load.stop()));
    await stand?.stop();
  });

  it('swaps tables under load without losing a request, and acknowledges each', async () => {
    const load = startLoad(8);
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(1, ['a', 'b'])]) } });
    load.failures.length = 0; // before there was a table
    for (let version = 2; version <= 20; version += 1) {
      const now = scaleTarget((version % 3) + 1, ['a', 'b'], { deployment: `d${version}` });
      const before = scaleTarget(((version - 1) % 3) + 1, ['a', 'b'], { deployment: `d${version - 1}` });
      await stand.publish({ servers: servers(), endpoints: { scale: route(version % 2 ? [now] : [now, before]) } });
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.sent).toBeGreaterThan(100);
    await stand.untilReport(({ inFlight }) => Object.keys(inFlight).length === 0);
  });

  it('uses another server for a model that one has lost, and another version when no server holds it', async () => {
    const targets = [scaleTarget(3, ['a', 'b']), scaleTarget(1, ['b'])];
    await stand.publish({ servers: servers(), endpoints: { scale: route(targets) } });
    const load = startLoad(4);
    await until(() => load.sent > 20, 'requests run');
    await unload(first, 'scale-v3');
    const seen = load.sent;
    await until(() => load.sent > seen + 100, 'requests go on');
    expect((await serve()).headers.get('x-perch-version')).toBe('3');
    await unload(second, 'scale-v3');
    await until(async () => (await serve()).headers.get('x-perch-version') === '1', 'version 1 answers');
    expect(
      (await stand.post('/v2/models/scale/versions/3/infer', { inputs: [] }, { 'x-request-timeout-ms': '1500' }))
        .status,
    ).toBe(503);
    await load.stop();
    expect(load.failures).toEqual([]);
    for (const server of [first, second]) await loadScale(server, 'scale-v3', 3);
    await until(async () => (await serve()).headers.get('x-perch-version') === '3', 'version 3 answers again');
  });

  it('loses no request when one of two servers is killed', async () => {
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(2, ['a', 'b'])]) } });
    const load = startLoad(8);
    await until(() => load.sent > 50, 'requests run');
    const retriesOf = async () => Number(/^perch_router_retries_total (\d+)$/m.exec(await metrics())?.[1]);
    const before = await retriesOf();
    const killedAt = Date.now();
    await first.stop('SIGKILL');
    const seen = load.sent;
    await until(() => load.sent > seen + 200, 'requests go on');
    await load.stop();
    expect(load.failures).toEqual([]);
    // those in flight (8 at most), and one probe at a time, of which the first rests 25 ms
    expect((await retriesOf()) - before).toBeLessThanOrEqual(8 + Math.ceil((Date.now() - killedAt) / 25));
    await first.restart();
    for (const version of [1, 2, 3]) await loadScale(first, `scale-v${version}`, version);
  });

  it('loses no request when more are in hand at a server that dies than may be tried again at once', async () => {
    await stand.publish({
      servers: servers(),
      endpoints: { scale: route([scaleTarget(1, ['a', 'b'])], { timeoutMs: 60_000 }) },
    });
    process.kill(first.pid, 'SIGSTOP');
    const answers = Promise.all(Array.from({ length: 180 }, serve));
    await until(async () => inFlightOf(await metrics()) >= 60, 'requests at the server that says nothing');
    await first.stop('SIGKILL');
    try {
      const statuses = (await answers).map(({ status }) => status);
      expect(statuses.filter((status) => status !== 200)).toEqual([]);
    } finally {
      await first.restart();
      for (const version of [1, 2, 3]) await loadScale(first, `scale-v${version}`, version);
    }
  });

  it('lets requests wait for the only server, and says 503 with Retry-After when their time is over', async () => {
    await stand.publish({ servers: { a: at(first) }, endpoints: { scale: route([scaleTarget(2, ['a'])]) } });
    expect((await serve()).status).toBe(200);
    await first.stop('SIGKILL');
    const late = await stand.post('/serve/scale', rows, { 'x-request-timeout-ms': '300' });
    expect([late.status, late.headers.get('retry-after'), late.json.error.code]).toEqual([503, '1', 'unavailable']);
    const waiting = Promise.all(Array.from({ length: 10 }, serve));
    await first.restart();
    for (const version of [1, 2, 3]) await loadScale(first, `scale-v${version}`, version);
    expect((await waiting).map(({ status }) => status)).toEqual(Array(10).fill(200));
  });

  it('starts from disk after SIGKILL with the control plane down, and follows it again afterwards', async () => {
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(1, ['a', 'b'])]) } });
    const port = Number(new URL(stand.control.address).port);
    await stand.control.close();
    await stand.router.crash();
    expect((await serve()).json).toEqual({ y: [[1, 2, 3, 4]] });
    expect((await stand.send('/health/ready')).status).toBe(200);
    const { startControlStub } = await import('../../bench/control-stub.mjs');
    stand.control = await startControlStub({ port });
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(2, ['a', 'b'])]) } });
    expect((await serve()).headers.get('x-perch-version')).toBe('2');
  });

  it('holds what an unconfirmed table of another lineage takes away', async () => {
    const old = { scale: route([scaleTarget(2, ['a']), scaleTarget(1, ['a'])]), other: route([scaleTarget(3, ['a'])]) };
    await stand.publish({ servers: servers(), endpoints: old });
    stand.control.restore();
    const older = { scale: route([scaleTarget(1, ['a'])]) };
    await stand.publish({ servers: servers(), endpoints: older, confirmed: false });
    const report = stand.control.reports.at(-1)!;
    expect([report.held, Object.keys(report.inFlight).sort()]).toEqual([true, ['d2', 'd3']]);
    expect((await stand.post('/serve/other', rows)).status).toBe(200);
    expect((await stand.post('/serve/scale/2', rows)).status).toBe(200);
    await stand.router.crash();
    expect((await stand.post('/serve/other', rows)).status).toBe(200);
    await stand.publish({ servers: servers(), endpoints: older, confirmed: true });
    await stand.untilReport(({ held, inFlight }) => !held && Object.keys(inFlight).length === 0);
    expect((await stand.post('/serve/other', rows)).status).toBe(404);
  });

  it('keeps the route it can serve when the new one’s processing does not load, and tells', async () => {
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    const file = stand.control.addBlob('tokenizer.json', Buffer.from('no tokenizer'));
    const broken = scaleTarget(2, ['a'], { processing: { builtin: 'text-embedding', options: {} }, files: [file] });
    await stand.publish({ servers: servers(), endpoints: { scale: route([broken]) } });
    const { problems, inFlight } = stand.control.reports.at(-1)!;
    expect(Object.keys(problems)).toEqual(['d2']);
    expect(inFlight).toEqual({ d1: 1 });
    expect((await serve()).headers.get('x-perch-version')).toBe('1');
  });

  it('enrols again when its token is no longer known, serving on', async () => {
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    stand.control.forgetTokens();
    await until(() => stand.control.enrolments === 2, 'enrolled again');
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(2, ['a'])]) } });
    expect((await serve()).headers.get('x-perch-version')).toBe('2');
  });

  it('keeps the table in force when a published one is not consistent', async () => {
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    stand.control.publish({ servers: {}, endpoints: { scale: route([scaleTarget(2, ['a'])]) } });
    await until(async () => (await stand.router.tail()).includes('which is not listed'), 'the fault is logged');
    expect((await serve()).headers.get('x-perch-version')).toBe('1');
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(2, ['a'])]) } });
  });

  it('answers what is in hand when it is stopped', async () => {
    await stand.publish({ servers: { a: at(first) }, endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    expect((await serve()).status).toBe(200);
    process.kill(first.pid, 'SIGSTOP');
    const answers = Promise.all(Array.from({ length: 20 }, serve));
    await until(async () => inFlightOf(await metrics()) === 20, 'all in hand');
    const stopped = stand.router.stop('SIGTERM');
    await until(async () => (await stand.router.tail()).includes('stopping'), 'stopping');
    process.kill(first.pid, 'SIGCONT');
    expect((await answers).map(({ status }) => status)).toEqual(Array(20).fill(200));
    await stopped;
    expect(stand.router.running).toBe(false);
  });

  it('reports requests that still run on a deployment its table no longer holds, until they have ended', async () => {
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    process.kill(first.pid, 'SIGSTOP');
    const answers = Promise.all(Array.from({ length: 3 }, serve));
    await until(async () => inFlightOf(await metrics()) === 3, 'all in hand');
    const revision = await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(2, ['b'])]) } });
    await stand.untilReport((report) => report.revision === revision && report.inFlight['d1'] === 3);
    expect((await serve()).headers.get('x-perch-version')).toBe('2');
    process.kill(first.pid, 'SIGCONT');
    expect((await answers).map(({ status }) => status)).toEqual([200, 200, 200]);
    await stand.untilReport(({ inFlight }) => Object.keys(inFlight).length === 0);
  });

  it('says 504 when a server does not answer in time, and ends the call when the client goes away', async () => {
    await stand.publish({ servers: servers(), endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    expect((await serve()).status).toBe(200);
    process.kill(first.pid, 'SIGSTOP');
    const late = await stand.post('/serve/scale', rows, { 'x-request-timeout-ms': '150' });
    expect([late.status, late.json.error.code, late.headers.get('x-perch-version')]).toEqual([504, 'timeout', '1']);
    const leaving = new AbortController();
    const gone = stand.send('/serve/scale', { method: 'POST', body: JSON.stringify(rows), signal: leaving.signal });
    await until(async () => inFlightOf(await metrics()) === 1, 'in hand');
    leaving.abort();
    await expect(gone).rejects.toThrow();
    await until(async () => inFlightOf(await metrics()) === 0, 'let go');
    expect(await metrics()).toMatch(/outcome="cancelled"\} 1/);
    process.kill(first.pid, 'SIGCONT');
  });
});

describe('a router with two workers', () => {
  let engine: ModelServer;
  let stand: RouterStand;
  beforeAll(async () => {
    engine = await startEngine();
    for (const version of [1, 2]) await loadScale(engine, `scale-v${version}`, version);
    stand = await RouterStand.start({ PERCH_WORKERS: '2' });
  });
  afterAll(async () => {
    await stand?.stop();
    await engine?.remove();
  });

  it('acknowledges what all have, adds their metrics up, swaps without loss', async () => {
    const servers = { a: { http: engine.http, grpc: engine.grpc } };
    await stand.publish({ servers, endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    const load = new ClosedLoad(8, () => stand.post('/serve/scale', rows));
    for (let i = 0; i < 6; i += 1)
      await stand.publish({
        servers,
        endpoints: { scale: route([scaleTarget((i % 2) + 1, ['a'], { deployment: `e${i}` })]) },
      });
    await load.stop();
    expect(load.failures).toEqual([]);
    const { text } = await stand.send('/metrics');
    const counts = [...text.matchAll(/perch_router_requests_total\{[^}]*outcome="ok"\} (\d+)/g)].map((one) =>
      Number(one[1]),
    );
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(load.sent);
  });
});
