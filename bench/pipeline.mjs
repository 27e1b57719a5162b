/**
 * What a pipeline buys: a CLIP-like one (an image and several captions through an encoder each, side by side, in batches)
 * beside the same work asked for one piece after another.
 */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { constant, node, types, valueInfo, writeModel } from '../scripts/models/onnx.mjs';
import { tritonCommand } from '../scripts/real-triton.mjs';
import { route, startControlStub, target } from './control-stub.mjs';
import { median } from './measure.mjs';
import { freePort, host, startRouter, until } from './parts.mjs';

const width = 512;
const layers = 6;
const captions = 5;
const inFlight = 8;
const turns = 6;

/** Some millions of weights: as in real encoders, a batch of rows costs little more than one. */
async function writeEncoder(repository, name, seed) {
  await mkdir(join(repository, name, '1'), { recursive: true });
  await writeFile(
    join(repository, name, 'config.pbtxt'),
    `name: "${name}" platform: "onnxruntime_onnx" max_batch_size: 64 dynamic_batching { max_queue_delay_microseconds: 500 }
instance_group { count: 1 kind: KIND_CPU }
input { name: "x" data_type: TYPE_FP32 dims: [ ${width} ] } output { name: "y" data_type: TYPE_FP32 dims: [ ${width} ] }\n`,
  );
  const weights = Array.from({ length: layers }, (_, layer) => {
    const values = Float32Array.from({ length: width * width }, (_, at) => (((at * 7919 + layer * 31 + seed) % 997) / 997 - 0.5) / 16);
    return constant(`w${layer}`, types.FP32, [width, width], values);
  });
  const steps = weights.flatMap((_, layer) => [
    node('MatMul', [layer === 0 ? 'x' : `t${layer - 1}`, `w${layer}`], [`m${layer}`]),
    node('Tanh', [`m${layer}`], [layer === layers - 1 ? 'y' : `t${layer}`]),
  ]);
  const tensor = (one) => valueInfo(one, types.FP32, ['batch', width]);
  const graph = { name, input: [tensor('x')], output: [tensor('y')], node: steps };
  await writeModel(join(repository, name, '1', 'model.onnx'), { graph, weights });
}

async function startEncoders(folder) {
  const repository = join(folder, 'pipeline-models');
  await writeEncoder(repository, 'image', 1);
  await writeEncoder(repository, 'text', 2);
  const [httpPort, grpcPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const { command, args, env } = tritonCommand({ repository, httpPort, grpcPort, metricsPort });
  const child = spawn(command, args, { env, stdio: 'ignore' });
  const http = `${host}:${httpPort}`;
  await until(async () => (await fetch(`http://${http}/v2/health/live`)).status === 200, 'start of Triton');
  for (const model of ['image', 'text']) {
    const loaded = await fetch(`http://${http}/v2/repository/models/${model}/load`, { method: 'POST' });
    if (!loaded.ok) throw new Error(`Triton did not load ${model}: ${await loaded.text()}`);
  }
  return { child, server: { http, grpc: `${host}:${grpcPort}` } };
}

function tableOver(server) {
  const tensor = (name) => [{ name, datatype: 'FP32', shape: [-1, width] }];
  const one = (tritonModel) =>
    route([target({ deployment: tritonModel, tritonModel, servers: ['a'], maxBatchSize: 64, inputs: tensor('x'), outputs: tensor('y') })]);
  const nodes = {
    image: { endpoint: 'image', input: { x: '$body.image' } },
    text: { endpoint: 'text', input: { x: '$body.captions' } },
  };
  const pipeline = { generation: 1, nodes, output: { image: '$image.y', text: '$text.y' }, modules: {} };
  const rest = { access: 'public', timeoutMs: 60_000, maxBodyBytes: 67_108_864, idempotent: true };
  return { servers: { a: server }, endpoints: { image: one('image'), text: one('text'), rank: { arms: [], targets: [], ...rest, pipeline } } };
}

const row = (seed) => Array.from({ length: width }, (_, at) => Math.round(Math.sin(at * seed) * 1_000) / 1_000);

async function ask(address, name, body) {
  const reply = await fetch(`${address}/serve/${name}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const text = await reply.text();
  if (reply.status !== 200) throw new Error(`${name} answered ${reply.status}: ${text.slice(0, 200)}`);
  return JSON.parse(text);
}

/** Answered in a second, by so many lanes that each ask again and again. */
async function perSecond(lanes, seconds, once) {
  const startedAt = performance.now();
  const end = startedAt + seconds * 1_000;
  let done = 0;
  const lane = async () => {
    while (performance.now() < end) {
      await once();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return done / ((performance.now() - startedAt) / 1_000);
}

const closeTo = (a, b) => a.length === b.length && a.every((one, at) => Math.abs(one - b[at]) < 1e-4);

/** `running`: what is to be stopped in the end. */
export async function measurePipeline({ folder, running, rounds, seconds, say }) {
  const triton = await startEncoders(folder);
  running.push(triton.child);
  const control = await startControlStub();
  running.push({ stub: control });
  control.publish(tableOver(triton.server));
  const router = await startRouter(folder, control);
  running.push(router.child);
  const image = [row(1)];
  const texts = Array.from({ length: captions }, (_, at) => row(at + 2));
  const whole = JSON.stringify({ image, captions: texts });
  const pieces = [['image', JSON.stringify({ x: image })], ...texts.map((one) => ['text', JSON.stringify({ x: [one] })])];
  const { address } = router;
  const oneAtATime = async () => {
    const answers = [];
    for (const [name, body] of pieces) answers.push((await ask(address, name, body)).y[0]);
    return answers;
  };
  const pipeline = () => ask(address, 'rank', whole);
  await until(async () => (await pipeline()) !== undefined, 'the pipeline in the router');
  const [{ image: got, text }, alone] = [await pipeline(), await oneAtATime()];
  if (![...got, ...text].every((one, at) => closeTo(one, alone[at]))) throw new Error('the pipeline answers other numbers');
  const ratios = { single: [], loaded: [] };
  for (let round = 0; round <= rounds; round += 1) {
    const sums = [0, 0, 0];
    // in short turns, so that whatever else this machine does hits all three
    for (let turn = 0; turn < turns; turn += 1) {
      sums[0] += await perSecond(1, seconds / turns, oneAtATime);
      sums[1] += await perSecond(1, seconds / turns, pipeline);
      sums[2] += await perSecond(inFlight, seconds / turns, pipeline);
    }
    const base = sums[0] / turns;
    const [single, loaded] = [sums[1] / sums[0], sums[2] / sums[0]];
    say(`pipeline round ${round}: ${base.toFixed(1)} a second one at a time, × ${single.toFixed(2)} as a pipeline, × ${loaded.toFixed(2)} with ${inFlight} in flight`);
    if (round === 0) continue; // warm-up
    ratios.single.push(single);
    ratios.loaded.push(loaded);
  }
  return [
    { name: 'CLIP-like pipeline beside its pieces one at a time', value: median(ratios.single), unit: '×' },
    { name: `the same with ${inFlight} in flight`, value: median(ratios.loaded), unit: '×' },
  ];
}
