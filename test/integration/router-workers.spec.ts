import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route } from '../../bench/control-stub.mjs';
import { type ModelServer, startEngine } from '../support/real-triton.ts';
import { loadScale, RouterStand, scaleTarget } from './router-stand.ts';

const rows = { x: [[1, 2, 3, 4]] };
const until = async (holds: () => Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!(await holds().catch(() => false))) {
    if (Date.now() > deadline) throw new Error('never came true');
    await new Promise((done) => setTimeout(done, 20));
  }
};

describe('a router whose worker is killed', () => {
  let engine: ModelServer;
  let stand: RouterStand;
  beforeAll(async () => {
    engine = await startEngine();
    await loadScale(engine, 'scale-v1', 1);
    stand = await RouterStand.start({ PERCH_WORKERS: '2' });
  });
  afterAll(async () => {
    await stand?.stop();
    await engine?.remove();
  });
  const workers = async () => {
    const { pid } = stand.router;
    const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.trim().split(' ').map(Number);
  };
  const ask = () => stand.post('/serve/scale', rows, { connection: 'close' });
  const answered = async () => {
    const { text } = await stand.send('/metrics', { headers: { connection: 'close' } });
    const counts = [...text.matchAll(/perch_router_requests_total\{[^}]*outcome="ok"\} (\d+)/g)];
    return counts.reduce((sum, one) => sum + Number(one[1]), 0);
  };

  it('goes on with the others, starts another, counts on, and acknowledges nothing that the new one has not', async () => {
    const servers = { a: { http: engine.http, grpc: engine.grpc } };
    await stand.publish({ servers, endpoints: { scale: route([scaleTarget(1, ['a'])]) } });
    for (let i = 0; i < 40; i += 1) expect((await ask()).status).toBe(200);
    expect(await answered()).toBe(40);
    const before = await workers();
    expect(before.length).toBe(2);
    process.kill(before[0]!, 'SIGKILL');
    await until(async () => {
      const now = await workers();
      return now.length === 2 && !now.includes(before[0]!);
    });
    const revision = await stand.publish({
      servers,
      endpoints: { scale: route([scaleTarget(1, ['a'], { deployment: 'e' })]) },
    });
    expect(stand.control.reports.at(-1)!.revision).toBe(revision);
    for (let i = 0; i < 10; i += 1) expect((await ask()).status).toBe(200);
    expect(await answered()).toBe(50);
  });
});
