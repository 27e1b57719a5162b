import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inspected, inspectable } from '../support/inspect.ts';
import { IsolationStand } from './isolation-stand.ts';

const warmUp = 60;
const swaps = 20;
/** Threads come and go meanwhile: the least resident memory of so many looks is what is held. */
const looks = 10;
const clients = 4;

/** What module number n answers; it carries some of its own weight, so that one that stays behind is seen. */
const module = (n: number) => `
  load() { return { weight: new Float64Array(500_000).fill(${n}) }; },
  preprocess(body) { return { inputs: { x: float32(body.x, [1, body.x.length]) }, carry: body.x }; },
  postprocess(outputs, { loaded, carry }) { return { n: loaded.weight[0], y: Array.from(asFloat32(outputs.y)), x: carry }; },
  unload(loaded) { loaded.weight = undefined; },`;

describe('another module under load', () => {
  let stand: IsolationStand;
  let inspected: Inspected;
  beforeAll(async () => {
    stand = await IsolationStand.start(inspectable);
    inspected = await Inspected.of(join(stand.stand.folder, 'router.log'));
  });
  afterAll(async () => {
    inspected?.close();
    await stand?.stop();
  });

  const put = async (n: number) => {
    stand.set('swapped', stand.module('test/swapped', module(n)));
    await stand.publish();
    const deadline = Date.now() + 30_000;
    while ((await stand.ask('swapped', { x: [1] })).json?.n !== n)
      if (Date.now() > deadline) throw new Error(`module ${n} does not answer`);
  };

  /** From module `first` on, so many one after the other; memory as it was in the end. */
  const swap = async (first: number, count: number) => {
    const seen: Awaited<ReturnType<Inspected['memory']>>[] = [];
    for (let n = 0; n < count; n += 1) {
      await put(first + n);
      if (n >= count - looks) seen.push(await inspected.memory());
    }
    return { ...seen.at(-1)!, rss: Math.min(...seen.map(({ rss }) => rss)) };
  };

  it(`${swaps} swaps: no request fails, each answer is of one module, and memory is what it was, to 10 %`, async () => {
    await put(1);
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
    // the spare, all threads of a module and what is made once are there before memory is looked at
    const before = await swap(2, warmUp);
    const after = await swap(2 + warmUp, swaps);
    running = false;
    await load;
    const text = ({ rss, heapUsed, external }: typeof before) =>
      [rss, heapUsed, external].map((bytes) => (bytes / 1_048_576).toFixed(0)).join('/');
    console.log(
      `${swaps} swaps under load: ${sent} requests, ${failures.length} failed; MB resident/heap/external ${text(before)} before, ${text(after)} after`,
    );
    expect(failures).toEqual([]);
    expect(seen.size).toBeGreaterThan(swaps / 2);
    expect(after.heapUsed + after.external).toBeLessThan(1.1 * (before.heapUsed + before.external));
    expect(after.rss).toBeLessThan(1.1 * before.rss);
  }, 240_000);
});
