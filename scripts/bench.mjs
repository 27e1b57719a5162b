/**
 * `npm run bench`: what a request costs in the router, beside nginx, behind both a real Triton.
 *
 *   --rounds N    rounds after the warm-up (5)      --seconds N   of load for each case of a round (3)
 *   --only request-path|big-table|assignment|text|image|worker|neighbour|pipeline  --json        one object with all figures as the last line
 *
 * `assignment`, `text`, `image`, `worker` and `neighbour` want nothing that is not installed by `npm ci`. A figure without a budget is only told.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { measureBigTable } from '../bench/big-table.mjs';
import { route, startControlStub, target } from '../bench/control-stub.mjs';
import { missingParts, startNginx, startRouter, startTriton, stop } from '../bench/parts.mjs';
import { measureRequestPath } from '../bench/request-path.mjs';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const parts = ['assignment', 'text', 'image', 'worker', 'neighbour', 'pipeline'];
const alone = parts.includes(options.only);
const say = (line) => process.stderr.write(`${line}\n`);

const fp32 = (name, ...shape) => ({ name, datatype: 'FP32', shape: [-1, ...shape] });
const ids = (name) => ({ name, datatype: 'INT64', shape: [-1, -1] });

function tableOver(triton, tokenizer) {
  const one = (tritonModel, fields) =>
    route([target({ deployment: tritonModel, tritonModel, servers: ['a'], ...fields })], { timeoutMs: 60_000 });
  return {
    servers: { a: { http: triton.http, grpc: triton.grpc } },
    endpoints: {
      small: one('small', { maxBatchSize: 64, inputs: [fp32('x', 4)], outputs: [fp32('y', 4)] }),
      picture: one('picture', { maxBatchSize: 8, inputs: [fp32('x', 150_528)], outputs: [fp32('y', 4)] }),
      'text/minilm': one('minilm', {
        maxBatchSize: 32,
        inputs: ['input_ids', 'attention_mask', 'token_type_ids'].map(ids),
        outputs: [fp32('last_hidden_state', -1, 384)],
        processing: { builtin: 'text-embedding', options: {} },
        files: [tokenizer],
      }),
    },
  };
}

async function measure(folder, running) {
  const figures = [];
  const rounds = Number(options.rounds);
  if (!options.only || options.only === 'assignment') {
    const { measureAssignment } = await import('../bench/assignment.mjs'); // reads what was built just now
    figures.push(...measureAssignment({ rounds, say }));
  }
  if (!options.only || options.only === 'text') {
    const { measureTextPath } = await import('../bench/text-path.mjs');
    figures.push(...(await measureTextPath({ rounds, say })));
  }
  if (!options.only || options.only === 'image') {
    const { measureImagePath } = await import('../bench/image-path.mjs');
    figures.push(...(await measureImagePath({ rounds, say })));
  }
  if (!options.only || options.only === 'worker') {
    const { measureWorkerPath } = await import('../bench/worker-path.mjs');
    figures.push(...(await measureWorkerPath({ rounds, seconds: Number(options.seconds), say })));
  }
  // takes as long as all others together
  if (options.only === 'neighbour') {
    const { measureNeighbour } = await import('../bench/neighbour.mjs');
    figures.push(...(await measureNeighbour({ folder, running, rounds, seconds: Number(options.seconds), say })));
  }
  if (!options.only || options.only === 'pipeline') {
    const { measurePipeline } = await import('../bench/pipeline.mjs');
    figures.push(...(await measurePipeline({ folder, running, rounds, seconds: Number(options.seconds), say })));
  }
  if (!alone) figures.push(...(await measureBehindTriton(folder, running, rounds)));
  return figures.map((figure) => ({
    ...figure,
    value: Number(figure.value.toPrecision(4)),
    ...(figure.budget === undefined ? {} : { met: figure.value <= figure.budget }),
  }));
}

async function measureBehindTriton(folder, running, rounds) {
  const triton = await startTriton(folder);
  running.push(triton.child);
  const control = await startControlStub();
  running.push({ stub: control });
  const base = tableOver(triton, control.addBlob('tokenizer.json', await readFile(triton.tokenizerFile)));
  control.publish(base);
  const seconds = Number(options.seconds);
  const figures = [];
  if (options.only !== 'big-table') {
    const router = await startRouter(folder, control);
    running.push(router.child);
    const nginx = await startNginx(folder, triton.http);
    running.push(nginx.child);
    figures.push(...(await measureRequestPath({ folder, triton, nginx, router, rounds, seconds, say })));
    await stop(router.child);
  }
  if (options.only !== 'request-path') {
    const router = await startRouter(folder, control);
    running.push(router.child);
    figures.push(...(await measureBigTable({ control, router, base, rounds, say })));
  }
  return figures;
}

const missing = alone ? [] : missingParts();
if (missing.length > 0) {
  console.error(`npm run bench needs what is not installed here:\n${missing.map((line) => `  ${line}`).join('\n')}`);
  process.exit(1);
}
execFileSync(process.execPath, [resolve(import.meta.dirname, 'build.mjs')], { stdio: 'inherit' });
const folder = await mkdtemp(join(tmpdir(), 'perch-bench-'));
const running = [];
try {
  const figures = await measure(folder, running);
  for (const { name, value, unit, budget, met } of figures)
    console.log(
      `${name.padEnd(52)} ${String(value).padStart(8)} ${unit.padEnd(4)} ${budget === undefined ? 'no budget' : `budget ${budget} ${unit}: ${met ? 'met' : 'MISSED'}`}`,
    );
  if (options.json) console.log(JSON.stringify({ figures }));
} finally {
  for (const part of running.reverse()) await (part.stub ? part.stub.close() : stop(part));
  await rm(folder, { recursive: true, force: true });
}
