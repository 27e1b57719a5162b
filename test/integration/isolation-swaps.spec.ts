import { readFile } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ModuleHost } from '@perch/processing';
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

  it(`${swaps} swaps: no request fails, each answer is of one module`, async () => {
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
    // nobody makes the router collect its garbage: what stays is held below
  }, 240_000);

  it(`${swaps} swaps: memory after a forced collection is what it was before, to 10 %`, async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const host = new ModuleHost();
    const load = (n: number) => {
      const bundle = Buffer.from(
        `import { defineProcessing } from '@perch/processing';\nexport default defineProcessing({${module(n)}});`,
      );
      const facts = {
        hooks: ['load' as const, 'preprocess' as const, 'postprocess' as const, 'unload' as const],
        body: 'json' as const,
      };
      const files = { list: () => ['module.mjs'], read: async () => bundle };
      const bound = { name: 'test/swapped', number: n, digest: `digest-${n}`, facts, files: [] };
      return host.load({
        module: bound,
        isolation: 'worker',
        options: {},
        files,
        signature: { inputs: [], outputs: [] },
        maxBatchSize: 1,
      });
    };
    const residentMb = () => {
      collect();
      collect();
      return process.memoryUsage.rss() / 1_048_576;
    };
    let current = await load(1);
    const swapTo = async (n: number) => {
      const next = await load(n);
      await current.unload();
      current = next;
    };
    // the spare is there before memory is looked at
    for (let n = 2; n <= 3; n += 1) await swapTo(n);
    const before = residentMb();
    for (let n = 4; n < 4 + swaps; n += 1) await swapTo(n);
    const after = residentMb();
    await current.unload();
    host.close();
    console.log(`${swaps} swaps: resident ${before.toFixed(0)} MB before, ${after.toFixed(0)} MB after`);
    expect(after).toBeLessThan(before * 1.1);
  }, 240_000);
});
