import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IsolationStand } from './isolation-stand.ts';

const swaps = 20;
const clients = 4;

/** What module number n answers; it carries some of its own weight, so that one that stays behind is seen. */
const module = (n: number) => `
  load() { return { weight: new Float64Array(500_000).fill(${n}) }; },
  preprocess(body) { return { inputs: { x: float32(body.x, [1, body.x.length]) }, carry: body.x }; },
  postprocess(outputs, { loaded, carry }) { return { n: loaded.weight[0], y: Array.from(asFloat32(outputs.y)), x: carry }; },
  unload(loaded) { loaded.weight = undefined; },`;

describe('another module under load', () => {
  let stand: IsolationStand;
  beforeAll(async () => {
    stand = await IsolationStand.start();
  });
  afterAll(() => stand?.stop());

  const residentMb = async () => {
    const status = await readFile(`/proc/${stand.stand.router.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1_024;
  };
  const put = async (n: number) => {
    stand.set('swapped', stand.module('test/swapped', module(n)));
    await stand.publish();
    const deadline = Date.now() + 30_000;
    while ((await stand.ask('swapped', { x: [1] })).json?.n !== n)
      if (Date.now() > deadline) throw new Error(`module ${n} does not answer`);
  };

  it(`${swaps} swaps: no request fails, each answer is of one module, memory comes back`, async () => {
    await put(1);
    // the spare and what is made once are there before memory is looked at
    await put(2);
    let running = true;
    let sent = 0;
    const failures: string[] = [];
    const seen = new Set<number>();
    const load = Promise.all(
      Array.from({ length: clients }, async () => {
        while (running) {
          sent += 1;
          const x = [sent, sent + 1];
          const { status, text, json } = await stand.ask('swapped', { x });
          if (status === 200 && String(json.x) === String(x) && String(json.y) === String(x)) seen.add(json.n);
          else failures.push(`${status} ${text}`);
        }
      }),
    );
    const settle = () => new Promise((done) => setTimeout(done, 1_500));
    await settle();
    const before = await residentMb();
    for (let n = 3; n < 3 + swaps; n += 1) await put(n);
    await settle();
    const after = await residentMb();
    running = false;
    await load;
    console.log(
      `${swaps} swaps under load: ${sent} requests, ${failures.length} failed; resident ${before.toFixed(0)} MB before, ${after.toFixed(0)} MB after`,
    );
    expect(failures).toEqual([]);
    expect(seen.size).toBeGreaterThan(swaps / 2);
    expect(after).toBeLessThan(before * 1.1 + 8);
  }, 240_000);
});
