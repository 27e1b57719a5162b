/**
 * A real S3 server without a container: versitygw, built from source with Go.
 *
 *   node scripts/real-s3.mjs install   builds it into the tools folder (about 4 minutes); doing it again changes nothing
 *   node scripts/real-s3.mjs where     prints {found, command, version} or {found: false, reason} as JSON
 *   node scripts/real-s3.mjs start     starts it on a free port with a temporary folder and an empty bucket, prints
 *                                      {endpoint, bucket, accessKeyId, secretAccessKey} as one line, runs until SIGINT or SIGTERM
 *   node scripts/real-s3.mjs with -- COMMAND …   runs a command beside such a server, told where it is by PERCH_STORE_URL and
 *                                      PERCH_S3_…; ends with its exit code
 *
 * Tools folder: PERCH_TOOLS_DIR, else $XDG_CACHE_HOME/perch, else ~/.cache/perch; the binary lies in `bin` below it.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toolsFolder } from './real-triton.mjs';

const version = '1.8.0';
const source = `github.com/versity/versitygw/cmd/versitygw@v${version}`;
const installCommand = 'node scripts/real-s3.mjs install';
const oldestGo = [1, 26];

const binaryPath = (tools) => join(tools, 'bin', `versitygw-${version}`);

/** What this machine lacks for a build, with the command that brings it; undefined when nothing is missing. */
export function missingForS3() {
  try {
    const text = execFileSync('go', ['env', 'GOVERSION'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const [major, minor] = (/go(\d+)\.(\d+)/.exec(text) ?? []).slice(1).map(Number);
    if (major > oldestGo[0] || (major === oldestGo[0] && minor >= oldestGo[1])) return undefined;
    return `Go ${oldestGo.join('.')} or later is needed to build it, here is ${text.trim()}: see https://go.dev/dl`;
  } catch {
    return `Go ${oldestGo.join('.')} or later is needed to build it and \`go\` was not found: see https://go.dev/dl`;
  }
}

/** `{found: true, command, version}` or `{found: false, reason}` with the command to run. */
export function findS3({ tools = toolsFolder() } = {}) {
  const command = binaryPath(tools);
  if (!existsSync(command))
    return { found: false, reason: `versitygw is not in ${join(tools, 'bin')}; run: ${installCommand}` };
  return { found: true, command, version };
}

/** Builds versitygw into the tools folder; answers what `findS3` finds. Does nothing when it is there. */
export function installS3({ tools = toolsFolder(), say = (line) => process.stderr.write(`${line}\n`) } = {}) {
  const before = findS3({ tools });
  if (before.found) return before;
  const missing = missingForS3();
  if (missing) throw new Error(`cannot install versitygw: ${missing}`);
  mkdirSync(join(tools, 'bin'), { recursive: true });
  const staging = mkdtempSync(join(tools, 'bin', '.build-'));
  try {
    say(`building versitygw ${version} with Go (about 4 minutes)`);
    const env = { ...process.env, GOBIN: staging, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' };
    execFileSync('go', ['install', '-trimpath', '-ldflags', '-s -w', source], {
      env,
      cwd: staging,
      stdio: ['ignore', 2, 2],
    });
    renameSync(join(staging, 'versitygw'), binaryPath(tools));
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  say(`versitygw ${version} is in ${join(tools, 'bin')}`);
  return findS3({ tools });
}

const freePort = () =>
  new Promise((done, fail) => {
    const server = createServer().once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/** Until the server answers anything at all; false when it ended before (the port was taken meanwhile, most likely). */
async function answers(child, endpoint, deadlineMs = 15_000) {
  const until = Date.now() + deadlineMs;
  while (child.exitCode === null && Date.now() < until) {
    const answer = await fetch(endpoint, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
    if (answer) return true;
    await new Promise((next) => setTimeout(next, 50));
  }
  return false;
}

async function createBucket(server) {
  const { CreateBucketCommand, S3Client } = await import('@aws-sdk/client-s3');
  const client = new S3Client({
    endpoint: server.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: server.accessKeyId, secretAccessKey: server.secretAccessKey },
  });
  await client.send(new CreateBucketCommand({ Bucket: server.bucket })).finally(() => client.destroy());
}

/**
 * A running server with one empty bucket: `{endpoint, bucket, accessKeyId, secretAccessKey, kill(), restart(), stop()}`. `kill` is a
 * SIGKILL, `restart` brings it back on the same port with the same data, `stop` ends it and removes its folder. The folder must lie on a
 * file system with extended attributes (`folder` names another one than the system's temporary folder).
 */
export async function startS3({ tools = toolsFolder(), folder = tmpdir() } = {}) {
  const found = findS3({ tools });
  if (!found.found) throw new Error(`no real S3 server: ${found.reason}`);
  const home = await mkdtemp(join(folder, 'perch-s3-'));
  for (const name of ['data', 'iam']) mkdirSync(join(home, name));
  const keys = { accessKeyId: 'perch-test', secretAccessKey: randomBytes(16).toString('hex') };
  let child;
  const launch = async (port) => {
    const args = [
      '--port',
      `127.0.0.1:${port}`,
      '--iam-dir',
      join(home, 'iam'),
      '--quiet',
      'posix',
      join(home, 'data'),
    ];
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      ROOT_ACCESS_KEY: keys.accessKeyId,
      ROOT_SECRET_KEY: keys.secretAccessKey,
    };
    child = spawn(found.command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk) => {
      said = `${said}${chunk}`.slice(-2_000);
    });
    if (await answers(child, `http://127.0.0.1:${port}/`)) return undefined;
    child.kill('SIGKILL');
    return said || 'it did not answer within 15 s';
  };
  const last = () => child?.kill('SIGKILL');
  process.once('exit', last); // whoever forgets to stop it leaves no process behind
  const ended = () =>
    new Promise((done) => (child.exitCode !== null || child.signalCode ? done() : child.once('exit', done)));
  const kill = async (signal = 'SIGKILL') => {
    child.kill(signal);
    await ended();
  };
  const stop = async () => {
    process.off('exit', last);
    await kill();
    await rm(home, { recursive: true, force: true });
  };
  let fault;
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    const port = await freePort();
    fault = await launch(port);
    if (fault) continue;
    const server = { endpoint: `http://127.0.0.1:${port}`, bucket: 'perch', ...keys, kill, stop };
    server.dataFolder = join(home, 'data/perch');
    server.signal = (signal) => child.kill(signal);
    server.restart = async () => {
      const again = await launch(port);
      if (again) throw new Error(`versitygw did not come back: ${again}`);
    };
    await createBucket(server);
    return server;
  }
  await rm(home, { recursive: true, force: true });
  throw new Error(`versitygw does not start: ${fault}`);
}

async function runUntilStopped() {
  const { endpoint, bucket, accessKeyId, secretAccessKey, stop } = await startS3();
  writeFileSync(1, `${JSON.stringify({ endpoint, bucket, accessKeyId, secretAccessKey })}\n`);
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop().then(() => process.exit(0)));
}

/** Settings of a control plane that is to use this server. */
export const s3Environment = (server) => ({
  PERCH_STORE_URL: `s3://${server.bucket}/perch`,
  PERCH_S3_ENDPOINT: server.endpoint,
  PERCH_S3_REGION: 'us-east-1',
  PERCH_S3_ACCESS_KEY_ID: server.accessKeyId,
  PERCH_S3_SECRET_ACCESS_KEY: server.secretAccessKey,
});

async function runWith() {
  const [command, ...args] = process.argv.slice(process.argv.indexOf('--') + 1);
  if (!process.argv.includes('--') || !command) throw new Error('with: wants -- and a command');
  const server = await startS3();
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, ...s3Environment(server) } });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  const code = await new Promise((done) => {
    child.once('error', (error) => {
      process.stderr.write(`real-s3: ${error.message}\n`);
      done(127);
    });
    child.once('exit', (exitCode, signal) => done(exitCode ?? (signal ? 1 : 0)));
  });
  await server.stop();
  process.exit(code);
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const verbs = {
    install: installS3,
    where: () => writeFileSync(1, `${JSON.stringify(findS3())}\n`),
    start: runUntilStopped,
    with: runWith,
  };
  const verb = verbs[process.argv[2]];
  if (!verb) {
    process.stderr.write('usage: node scripts/real-s3.mjs install | where | start | with -- COMMAND …\n');
    process.exit(2);
  }
  try {
    await verb();
  } catch (error) {
    process.stderr.write(`real-s3: ${error.message}\n`);
    process.exit(1);
  }
}
