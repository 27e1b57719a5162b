/** What running a module in a worker thread, or in a process, adds to a request beside running it inline. */
import { createHash } from 'node:crypto';
import { median } from './measure.mjs';

const source = `import { defineProcessing, float32, asFloat32 } from '@perch/processing';
export default defineProcessing({
  preprocess(body) { return { inputs: { x: float32(body.x, [1, 4]) }, carry: body.tag }; },
  postprocess(outputs, { carry }) { return { y: Array.from(asFloat32(outputs.x)), tag: carry }; },
});`;

const inFlight = 32;
const body = Buffer.from(JSON.stringify({ x: [1.5, 2.5, 3.5, 4.5], tag: 'a' }));
const wanted = JSON.stringify({ y: [1.5, 2.5, 3.5, 4.5], tag: 'a' });

const callUntil = (endMs) => ({
  requestId: 'bench', endpoint: 'bench', version: 1, headers: { accept: '*/*', 'content-type': 'application/json' },
  signal: undefined, state: {}, streams: false, remainingMs: () => endMs - performance.now(),
});

/** Requests one after another in each of 32 lanes; the model is a turn of the event loop. Micros of time and of this process's CPU. */
async function measureOnce(loaded, seconds) {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  const until = startedAt + seconds * 1_000;
  let requests = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (performance.now() < until) {
        const ctx = callUntil(performance.now() + 10_000);
        const prepared = loaded.preprocess(body, 'application/json', ctx);
        const { inputs, carry } = prepared instanceof Promise ? await prepared : prepared;
        await new Promise((next) => setImmediate(next));
        const reply = await loaded.postprocess(inputs, carry, ctx);
        const text = Buffer.isBuffer(reply) ? reply.toString('latin1') : JSON.stringify(reply);
        if (text !== wanted) throw new Error(`answered ${text}`);
        requests += 1;
      }
    }),
  );
  const { user, system } = process.cpuUsage(cpu);
  const tookUs = (performance.now() - startedAt) * 1_000;
  return {
    requests,
    us: tookUs / requests,
    cpuUs: (user + system) / requests,
    loopUs: (performance.eventLoopUtilization(loop).active * 1_000) / requests,
  };
}

export async function measureWorkerPath({ rounds, seconds, say }) {
  const { ModuleHost } = await import('@perch/processing/host'); // reads what was built just now
  const host = new ModuleHost();
  const bundle = Buffer.from(source);
  const module = {
    name: 'bench/echo', number: 1, digest: createHash('sha256').update(bundle).digest('hex'),
    facts: { hooks: ['preprocess', 'postprocess'], body: 'json' }, files: [],
  };
  const files = { list: () => ['module.mjs'], read: async () => bundle };
  const places = ['inline', 'worker', 'process'];
  const loaded = {};
  for (const isolation of places)
    loaded[isolation] = await host.load({ module, isolation, options: {}, files, signature: { inputs: [], outputs: [] }, maxBatchSize: 1 });
  const figures = Object.fromEntries(places.map((place) => [place, []]));
  for (let round = 0; round <= rounds; round += 1)
    for (const place of places) {
      const one = await measureOnce(loaded[place], seconds);
      const when = round === 0 ? 'warm-up' : `round ${round}`;
      say(`${when}: ${place}: ${one.requests} requests, ${one.us.toFixed(1)} µs each, ${one.cpuUs.toFixed(1)} µs of CPU here, ${one.loopUs.toFixed(1)} µs of the event loop`);
      if (round > 0) figures[place].push(one);
    }
  for (const place of places) await loaded[place].unload();
  host.close();
  const added = (place, of) => median(figures[place].map((one, round) => one[of] - figures.inline[round][of]));
  return [
    { name: 'worker path, added to a request at 32 in flight', value: added('worker', 'us'), unit: 'µs', budget: 25 },
    { name: 'worker path, added to the event loop', value: added('worker', 'loopUs'), unit: 'µs', budget: 25 },
    { name: 'process path, added to a request at 32 in flight', value: added('process', 'us'), unit: 'µs' },
  ];
}
