/** 1,000 endpoints × 2 versions × 3 servers: how fast such a table is taken, what pauses it makes, what it weighs. */
import { route, target } from './control-stub.mjs';
import { median, residentMiB } from './measure.mjs';
import { until } from './parts.mjs';

const endpoints = 1_000;
const tensors = (name) => [
  { name, datatype: 'FP32', shape: [-1, 4] },
  { name: `${name}_more`, datatype: 'INT64', shape: [-1, -1], optional: true },
];

function bigTable(generation, servers) {
  const table = {};
  for (let i = 0; i < endpoints; i += 1) {
    const targets = [2, 1].map((step) => {
      const version = generation + step;
      return target({
        deployment: `0199a000-0000-7000-8000-${String(i).padStart(6, '0')}${String(version).padStart(6, '0')}`,
        version,
        tritonModel: `model-${i}-v${version}-${'0123456789ab'}`,
        servers: Object.keys(servers),
        maxBatchSize: 8,
        inputs: tensors('x'),
        outputs: tensors('y'),
        files: [],
      });
    });
    table[`big/endpoint-${i}`] = route(targets, {
      arms: [{ deployment: targets[0].deployment, share: 0.9 }, { deployment: targets[1].deployment, share: 0.1 }],
      access: 'key',
    });
  }
  return table;
}

/** `base`: what is published besides, an endpoint `small` among it that tells which table is in force. */
export async function measureBigTable({ control, router, base, rounds, say }) {
  const servers = { ...base.servers };
  for (const id of ['b', 'c']) servers[id] = base.servers.a;
  const keys = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`key-${i}`, { hash: String(i).padStart(64, '0'), endpoints: [] }]));
  const swapMs = [];
  const pauseMs = [];
  for (let generation = 0; generation <= rounds; generation += 1) {
    const small = { ...base.endpoints.small, targets: base.endpoints.small.targets.map((one) => ({ ...one, version: 100 + generation })) };
    const table = { servers, keys, endpoints: { ...base.endpoints, ...bigTable(generation, servers), small } };
    await router.watchLoop();
    const startedAt = performance.now();
    control.publish(table);
    await until(async () => {
      const body = JSON.stringify({ x: [1, 2, 3, 4] });
      const answer = await fetch(`${router.address}/serve/small`, { method: 'POST', body });
      await answer.arrayBuffer();
      return answer.headers.get('x-perch-version') === String(100 + generation);
    }, 'the swap of the big table');
    const took = performance.now() - startedAt;
    const pause = await router.longestPauseMs();
    say(`table ${generation}: served after ${took.toFixed(0)} ms, longest pause ${pause.toFixed(1)} ms`);
    if (generation === 0) continue; // the first one also compiles the code that reads tables
    swapMs.push(took);
    pauseMs.push(pause);
  }
  return [
    { name: 'swap of a table of 1,000 endpoints, end to end', value: median(swapMs), unit: 'ms', budget: 1_000 },
    { name: 'longest pause of the event loop meanwhile', value: median(pauseMs), unit: 'ms', budget: 20 },
    { name: 'memory of the router with it', value: residentMiB(router.child.pid), unit: 'MiB', budget: 200 },
  ];
}
