/** The programs that the bench puts together: a real Triton, nginx in front of it, the router in front of it, wrk. */
import { execFile, execFileSync, fork, spawn } from 'node:child_process';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { constant, node, types, valueInfo, writeModel } from '../scripts/models/onnx.mjs';
import { minilmFolder } from '../scripts/models/minilm.mjs';
import { findTriton, tritonCommand } from '../scripts/real-triton.mjs';

const root = resolve(import.meta.dirname, '..');
export const host = '127.0.0.1';

/** The policy file keeps Debian from starting nginx as a service on every address. */
const policy = '/usr/sbin/policy-rc.d';
const installs = {
  nginx: `nginx: printf '#!/bin/sh\\nexit 101\\n' > ${policy}; chmod +x ${policy}; apt-get update && apt-get install -y --no-install-recommends nginx-light; rm ${policy}`,
  wrk: 'wrk: apt-get update && apt-get install -y --no-install-recommends wrk',
};

/** What is not installed, each with its command; empty when all is there. */
export function missingParts() {
  const missing = [];
  for (const program of ['nginx', 'wrk']) {
    try {
      execFileSync(program, ['-v'], { stdio: 'ignore' });
    } catch (error) {
      if (error.code === 'ENOENT')
        missing.push(installs[program]);
    }
  }
  const triton = findTriton();
  if (!triton.found) missing.push(`a real Triton: ${triton.reason}`);
  return missing;
}

export async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, host, done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

export async function until(check, what, limitMs = 60_000) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    if (await check().catch(() => false)) return;
    if (Date.now() > deadline) throw new Error(`${what} did not happen within ${limitMs} ms`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

const answers = (url) => async () => (await fetch(url)).status === 200;

/** Ends a child and waits for it. */
export async function stop(child) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(late);
}

const config = (name, batch, inputs, outputs) => {
  const tensor = ([tensorName, type, dims]) => `{ name: "${tensorName}" data_type: ${type} dims: [ ${dims.join(', ')} ] }`;
  return `name: "${name}" platform: "onnxruntime_onnx" max_batch_size: ${batch} dynamic_batching { }
instance_group { count: 1 kind: KIND_CPU }
${inputs.map((one) => `input ${tensor(one)}`).join('\n')}\n${outputs.map((one) => `output ${tensor(one)}`).join('\n')}\n`;
};

async function writeModels(repository) {
  const put = async (name, text) => {
    await mkdir(join(repository, name, '1'), { recursive: true });
    await writeFile(join(repository, name, 'config.pbtxt'), text);
    return join(repository, name, '1', 'model.onnx');
  };
  const fp32 = (name, shape) => valueInfo(name, types.FP32, shape);
  await writeModel(await put('small', config('small', 64, [['x', 'TYPE_FP32', [4]]], [['y', 'TYPE_FP32', [4]]])), {
    graph: { name: 'small', input: [fp32('x', ['batch', 4])], output: [fp32('y', ['batch', 4])], node: [node('Identity', ['x'], ['y'])] },
    weights: [],
  });
  const longs = (values) => new BigInt64Array(values.map(BigInt));
  const slice = [[0], [4], [1]].map((values, i) => constant(['from', 'to', 'axis'][i], types.INT64, [1], longs(values)));
  await writeModel(await put('picture', config('picture', 8, [['x', 'TYPE_FP32', [150_528]]], [['y', 'TYPE_FP32', [4]]])), {
    graph: { name: 'picture', input: [fp32('x', ['batch', 150_528])], output: [fp32('y', ['batch', 4])], node: [node('Slice', ['x', 'from', 'to', 'axis'], ['y'])] },
    weights: slice,
  });
  const minilm = await minilmFolder(1);
  const ids = (name) => [name, 'TYPE_INT64', [-1]];
  const text = config('minilm', 32, ['input_ids', 'attention_mask', 'token_type_ids'].map(ids), [['last_hidden_state', 'TYPE_FP32', [-1, 384]]]);
  await copyFile(join(minilm, 'model.onnx'), await put('minilm', text));
  return join(minilm, 'tokenizer.json');
}

export async function startTriton(folder) {
  const repository = join(folder, 'models');
  const tokenizerFile = await writeModels(repository);
  const [httpPort, grpcPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const { command, args, env } = tritonCommand({ repository, httpPort, grpcPort, metricsPort });
  const child = spawn(command, args, { env, stdio: 'ignore' });
  const http = `${host}:${httpPort}`;
  await until(answers(`http://${http}/v2/health/live`), 'start of Triton');
  for (const model of ['small', 'picture', 'minilm']) {
    const loaded = await fetch(`http://${http}/v2/repository/models/${model}/load`, { method: 'POST' });
    if (!loaded.ok) throw new Error(`Triton did not load ${model}: ${await loaded.text()}`);
  }
  return { child, http, grpc: `${host}:${grpcPort}`, tokenizerFile };
}

/** One worker, keep-alive both ways, bodies kept in memory: nginx at its best. */
export async function startNginx(folder, upstream) {
  const port = await freePort();
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/nginx-${name};`);
  await writeFile(
    join(folder, 'nginx.conf'),
    `worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 4096; }
http { access_log off; ${paths.join(' ')}
  client_body_buffer_size 4m; client_max_body_size 64m; proxy_buffer_size 64k; proxy_buffers 16 64k; keepalive_requests 1000000000;
  upstream triton { server ${upstream}; keepalive 128; keepalive_requests 1000000000; }
  server { listen ${host}:${port}; location / { proxy_pass http://triton; proxy_http_version 1.1; proxy_set_header Connection ""; } } }`,
  );
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' });
  await until(answers(`http://${host}:${port}/v2/health/live`), 'start of nginx');
  return { child, address: `http://${host}:${port}` };
}

export async function startRouter(folder, control, settings = {}) {
  const port = await freePort();
  const env = {
    PATH: process.env.PATH,
    PERCH_LISTEN: `${host}:${port}`,
    PERCH_CONTROL_URL: control.address,
    PERCH_JOIN_KEY: control.joinKey,
    PERCH_DATA_DIR: join(folder, `router-${port}`),
    PERCH_LOG_LEVEL: 'warn',
    ...settings,
  };
  const execArgv = ['--import', join(root, 'bench/loop-watch.mjs')];
  const child = fork(join(root, 'apps/router/dist/main.js'), { env, execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const address = `http://${host}:${port}`;
  await until(answers(`${address}/health/ready`), 'a routing table at the router');
  const ask = (message) =>
    new Promise((done) => {
      child.once('message', ({ longestMs }) => done(longestMs));
      child.send(message);
    });
  const watchLoop = () => ask('watch');
  const longestPauseMs = () => ask('longest-pause');
  return { child, address, watchLoop, longestPauseMs };
}

const run = promisify(execFile);

/** Loads one URL; answers how many requests were answered and the median latency in milliseconds. Throws on any but 2xx. */
export async function wrk({ url, script, connections, seconds }) {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s', '--latency', '-s', script, url];
  const { stdout } = await run('wrk', args);
  const bad = /Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)/.exec(stdout);
  if (bad) throw new Error(`${url}: ${bad[0]}`);
  const [, amount, unit] = /50%\s+([\d.]+)(us|ms|s)/.exec(stdout);
  return {
    requests: Number(/(\d+) requests in/.exec(stdout)[1]),
    medianMs: Number(amount) * { us: 0.001, ms: 1, s: 1_000 }[unit],
  };
}

/** A wrk script that posts one body. */
export async function postScript(folder, name, body, headers) {
  await writeFile(join(folder, `${name}.body`), body);
  const lines = Object.entries(headers).map(([key, value]) => `wrk.headers["${key}"] = "${value}"`);
  const script = `local file = io.open("${folder}/${name}.body", "rb")
wrk.method = "POST"\nwrk.body = file:read("*a")\nfile:close()\n${lines.join('\n')}\n`;
  await writeFile(join(folder, `${name}.lua`), script);
  return join(folder, `${name}.lua`);
}
