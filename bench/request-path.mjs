/** CPU per request of the router's process tree, beside nginx proxying the same to the same Triton, in turns. */
import { cpuMicros, median } from './measure.mjs';
import { postScript, wrk } from './parts.mjs';

const json = { 'Content-Type': 'application/json' };
const words = 'the quick brown fox jumps over a lazy dog by the river';

/** 150,528 numbers of four decimals. */
const pixels = () => Array.from({ length: 150_528 }, (_, i) => Math.round(((i * 7_919) % 10_007) * 0.9991) / 10_000);

async function scripts(folder) {
  const floats = pixels();
  const head = Buffer.from(
    JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 150_528], parameters: { binary_data_size: 602_112 } }] }),
  );
  const binary = Buffer.concat([head, Buffer.from(new Float32Array(floats).buffer)]);
  const protocol = { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1.5, 2.5, 3.5, 4.5] }] };
  return {
    small: await postScript(folder, 'small', JSON.stringify({ x: [1.5, 2.5, 3.5, 4.5] }), json),
    protocol: await postScript(folder, 'protocol', JSON.stringify(protocol), json),
    text: await postScript(folder, 'text', JSON.stringify({ text: words }), json),
    floats: await postScript(folder, 'floats', JSON.stringify({ x: floats }), json),
    binary: await postScript(folder, 'binary', binary, {
      'Content-Type': 'application/octet-stream',
      'Inference-Header-Content-Length': head.length,
    }),
  };
}

/**
 * Cases in groups: those of one group are loaded in turns, round after round; groups follow one another, so that the
 * garbage of big bodies is not collected at the cost of small ones. `router` and `nginx` of one name make a ratio.
 * `warmSeconds`: until the compiler of JavaScript has nothing more to do, which takes some 5,000 requests.
 */
const groupsOf = (script) => [
  [
    { name: 'small', on: 'nginx', script: script.protocol, path: '/v2/models/small/infer', connections: 32 },
    { name: 'small', on: 'router', script: script.small, path: '/serve/small', connections: 32, warmSeconds: 10 },
    { name: 'alone', on: 'triton', script: script.protocol, path: '/v2/models/small/infer', connections: 1 },
    { name: 'alone', on: 'router', script: script.small, path: '/serve/small', connections: 1 },
  ],
  [{ name: 'text', on: 'router', script: script.text, path: '/serve/text/minilm', connections: 8, warmSeconds: 25 }],
  [
    { name: 'binary', on: 'nginx', script: script.binary, path: '/v2/models/picture/infer', connections: 4 },
    { name: 'binary', on: 'router', script: script.binary, path: '/v2/models/picture/infer', connections: 4 },
  ],
  [{ name: 'floats', on: 'router', script: script.floats, path: '/serve/picture', connections: 4 }],
];

export async function measureRequestPath({ folder, triton, nginx, router, rounds, seconds, say }) {
  const groups = groupsOf(await scripts(folder));
  const turns = groups.flatMap((group) => Array.from({ length: rounds + 1 }, (_, round) => group.map((one) => ({ ...one, round }))).flat());
  const places = {
    nginx: { address: nginx.address, pid: nginx.child.pid },
    router: { address: router.address, pid: router.child.pid },
    triton: { address: `http://${triton.http}`, pid: triton.child.pid },
  };
  const micros = {};
  const latencies = {};
  for (const { name, on, script, path, connections, round, warmSeconds = 6 } of turns) {
    const { address, pid } = places[on];
    const before = cpuMicros(pid);
    const warm = round === 0;
    const load = { url: address + path, script, connections, seconds: warm ? warmSeconds : seconds };
    const { requests, medianMs } = await wrk(load);
    const each = (cpuMicros(pid) - before) / requests;
    const when = warm ? 'warm-up' : `round ${round}`;
    say(`${when}: ${name} on ${on}: ${requests} requests, ${each.toFixed(1)} µs each, p50 ${medianMs.toFixed(2)} ms`);
    if (warm) continue;
    (micros[`${name} ${on}`] ??= []).push(each);
    (latencies[`${name} ${on}`] ??= []).push(medianMs);
  }
  const cost = (key) => median(micros[key]);
  const ratio = (name) => median(micros[`${name} router`].map((value, round) => value / micros[`${name} nginx`][round]));
  const added = median(latencies['alone router'].map((value, round) => value - latencies['alone triton'][round]));
  for (const key in micros) say(`median: ${key}: ${cost(key).toFixed(1)} µs of CPU a request`);
  return [
    { name: 'small JSON through /serve, CPU beside nginx', value: ratio('small'), unit: 'x', budget: 2 },
    { name: 'short text to embedding, CPU', value: cost('text router'), unit: 'µs', budget: 250 },
    { name: '602 KB binary through /v2, CPU beside nginx', value: ratio('binary'), unit: 'x', budget: 2 },
    { name: '150,528 floats as JSON, CPU', value: cost('floats router') / 1_000, unit: 'ms', budget: 12 },
    { name: 'added latency at p50, one in flight', value: Math.max(0, added), unit: 'ms', budget: 0.25 },
  ];
}
