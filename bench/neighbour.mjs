/** What another endpoint feels while one endpoint's module misbehaves, again and again: its 99th percentile beside the usual one. */
import { createServer } from 'node:http';
import { route, startControlStub, target } from './control-stub.mjs';
import { median } from './measure.mjs';
import { doubling, echo, misbehaving, moduleOf } from './modules.mjs';
import { host, startRouter, stop, until } from './parts.mjs';

/** `nothing` is no misdeed: what differs there is the machine. */
const kinds = {
  worker: ['nothing', 'loop', 'loop later', 'never', 'exit', 'crash', 'rejection', 'heap', 'throw', 'refuse', 'pollution'],
  process: ['nothing', 'loop', 'exit', 'rejection', 'heap', 'buffers', 'throw', 'file', 'write', 'network', 'connection', 'command', 'environment'],
}; // biome-ignore format: one row a place
const clients = 4;
const everyMs = 10;
const timeoutMs = 400;
/** One misdeed a second: more often and the module is refused for a while, which costs nobody anything. */
const misdeedEveryMs = 1_000;

async function startEcho() {
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => echo(request, response, Buffer.concat(pieces)));
  });
  await new Promise((done) => server.listen(0, host, done));
  return { at: `${host}:${server.address().port}`, close: () => server.close() };
}

function tableOver(control, echo) {
  const one = (endpoint, number, hooks, isolation) => {
    const module = moduleOf(control, `bench/${endpoint}`, number, hooks);
    const tensor = (name) => [{ name, datatype: 'FP32', shape: [-1, -1] }];
    return route([
      target({
        deployment: `d-${number}`, tritonModel: 'm', servers: ['a'], maxBatchSize: 8, inputs: tensor('x'), outputs: tensor('y'),
        processing: { module, isolation, options: {} },
      }),
    ]);
  };
  const endpoints = { good: one('good', 1, doubling, 'worker') };
  for (const place of Object.keys(kinds))
    kinds[place].forEach((_, at) => {
      endpoints[`${place}-${at}`] = one(`${place}-${at}`, Object.keys(endpoints).length + 1, misbehaving, place);
    });
  return { servers: { a: { http: echo.at, grpc: echo.at } }, endpoints };
}

async function ask(address, endpoint, body, headers = {}) {
  const reply = await fetch(`${address}/serve/${endpoint}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return { status: reply.status, text: await reply.text() };
}

/** Asks the good endpoint at a steady pace, while `work` goes on; milliseconds of every answer. */
async function neighbourDuring(address, work) {
  const tookMs = [];
  let running = true;
  const client = async (at) => {
    await new Promise((done) => setTimeout(done, (at * everyMs) / clients));
    for (let n = 1; running; n += 1) {
      const startedAt = performance.now();
      const { status, text } = await ask(address, 'good', { x: [n], tag: n });
      const took = performance.now() - startedAt;
      tookMs.push(took);
      if (status !== 200 || text !== `{"y":[${2 * n}],"tag":${n}}`) throw new Error(`the other endpoint answered ${status}: ${text}`);
      await new Promise((done) => setTimeout(done, Math.max(0, everyMs - took)));
    }
  };
  const all = Promise.all(Array.from({ length: clients }, (_, at) => client(at)));
  await Promise.race([work(), all]);
  running = false;
  await all;
  return tookMs.sort((a, b) => a - b);
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const p99 = (sorted) => sorted[Math.floor(sorted.length * 0.99)];

/** Answers of the good endpoint before, beside and after the misdeeds of one kind. */
async function measureKind(address, endpoint, kind, seconds) {
  await until(async () => (await ask(address, endpoint, { do: 'nothing' })).status === 200, `an answer of ${endpoint}`);
  const usual = () => neighbourDuring(address, () => pause(seconds * 500));
  const before = await usual();
  const beside = await neighbourDuring(address, async () => {
    for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
      const next = pause(misdeedEveryMs);
      await ask(address, endpoint, { do: kind }, { 'x-request-timeout-ms': String(timeoutMs) });
      await next;
    }
  });
  return { usual: [...before, ...(await usual())], beside };
}

/** All rounds of a kind together: single windows of a few seconds differ by twice and more on a small machine. */
function ratioOf(windows) {
  const all = (side) => p99(windows.flatMap((one) => one[side]).sort((a, b) => a - b));
  const [usualMs, besideMs] = [all('usual'), all('beside')];
  return { usualMs, besideMs, ratio: besideMs / usualMs };
}

export async function measureNeighbour({ folder, running, rounds, seconds, say }) {
  const control = await startControlStub();
  const echo = await startEcho();
  running.push({ stub: control }, { stub: echo });
  control.publish(tableOver(control, echo));
  const router = await startRouter(folder, control, {
    PERCH_MODULE_HEAP_MB: '64',
    PERCH_MODULE_MEMORY_MB: '256',
    PERCH_LOG_LEVEL: 'error',
  });
  running.push(router.child);
  await until(async () => (await ask(router.address, 'good', { x: [1], tag: 1 })).status === 200, 'an answer of the good one');
  await neighbourDuring(router.address, () => pause(3_000));
  const windows = {};
  for (let round = 0; round < rounds; round += 1)
    for (const place of Object.keys(kinds))
      for (const [at, kind] of kinds[place].entries())
        (windows[`${place}, ${kind}`] ??= []).push(await measureKind(router.address, `${place}-${at}`, kind, seconds));
  const figures = Object.keys(kinds).flatMap((place) => {
    const ratios = kinds[place].map((kind) => {
      const one = ratioOf(windows[`${place}, ${kind}`]);
      say(`${place}, ${kind}: p99 of another endpoint ${one.usualMs.toFixed(2)} -> ${one.besideMs.toFixed(2)} ms, × ${one.ratio.toFixed(2)}`);
      return one.ratio;
    });
    const [noise] = ratios.splice(kinds[place].indexOf('nothing'), 1);
    const figure = (what, value) => ({ name: `p99 beside misdeeds in a ${place}, ${what}`, value, unit: '×', budget: 1.5 });
    return [
      { name: `p99 beside no misdeed in a ${place} (noise)`, value: noise, unit: '×' },
      figure('median of kinds', median(ratios)),
      figure('the worst kind', Math.max(...ratios)),
    ];
  });
  await stop(router.child);
  return figures;
}
