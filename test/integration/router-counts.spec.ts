import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route } from '../../bench/control-stub.mjs';
import { type ModelServer, startEngine } from '../support/real-triton.ts';
import { loadScale, RouterStand, scaleTarget } from './router-stand.ts';

const rows = { x: [[1, 2, 3, 4]] };

describe.each([1, 2])('what a router with %i workers counts', (workers) => {
  let engine: ModelServer;
  let stand: RouterStand;
  beforeAll(async () => {
    engine = await startEngine();
    await loadScale(engine, 'scale-v1', 1);
    stand = await RouterStand.start({ PERCH_WORKERS: String(workers) });
    const servers = { a: { http: engine.http, grpc: engine.grpc } };
    await stand.publish({
      servers,
      endpoints: { scale: route([scaleTarget(1, ['a'])]), idle: route([scaleTarget(1, ['a'], { deployment: 'i' })]) },
    });
  });
  afterAll(async () => {
    await stand?.stop();
    await engine?.remove();
  });

  const counted = () => stand.control.counts['scale']?.['1'];
  const send = async (times: number, body: unknown, status: number) => {
    for (let at = 0; at < times; at += 1)
      expect((await stand.post('/serve/scale', body, { connection: 'close' })).status).toBe(status);
  };
  const until = async (requests: number): Promise<void> => {
    for (const deadline = Date.now() + 20_000; (counted()?.requests ?? 0) < requests; ) {
      if (Date.now() > deadline) throw new Error(`counted ${JSON.stringify(counted())}`);
      await new Promise((done) => setTimeout(done, 20));
    }
  };

  it('is told by version: what the client did wrong is no error, idle endpoints are not told', async () => {
    await send(30, rows, 200);
    await send(3, { x: 'nonsense' }, 400);
    await until(33);
    expect(counted()).toMatchObject({ requests: 33, errors: 0, retries: 0 });
    expect(counted()!.latency.reduce((sum, count) => sum + count, 0)).toBe(33);
    expect(Object.keys(stand.control.counts)).toEqual(['scale']);
  });

  it('goes on from there when a worker dies, and tells the last of it when it stops', async () => {
    const children = async () =>
      (await readFile(`/proc/${stand.router.pid}/task/${stand.router.pid}/children`, 'utf8')).trim().split(' ');
    if (workers > 1) {
      const [first] = await children();
      process.kill(Number(first), 'SIGKILL');
      for (const deadline = Date.now() + 20_000; ; ) {
        const now = await children();
        if (now.length === workers && !now.includes(first!)) break;
        if (Date.now() > deadline) throw new Error('no new worker');
        await new Promise((done) => setTimeout(done, 20));
      }
      await until(33); // what the dead one counted was told, or stays in the sums
    }
    await send(7, rows, 200);
    await until(40);
    expect(counted()!.requests).toBe(40);
    await send(5, rows, 200);
    await stand.router.stop();
    expect(counted()!.requests).toBe(45);
  });
});
