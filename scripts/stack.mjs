/** The embedded stack as a child process, for the demo and the examples. Node's built-ins only. */
import { execFile, spawn } from 'node:child_process';
import { chmod, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from './install.mjs';

const cli = join(root, 'apps/cli/dist/main.js');
const startTimeoutMs = 180_000;
const pause = (ms) => new Promise((next) => setTimeout(next, ms));

/** The embedded stack as one child, which ends when our end of its standard input closes. */
export class Stack {
  /** `folder`: an empty one. `triton`, `s3`, `postgres`: as flags of `perch up`; `keep`: goes on without us. */
  constructor(folder, { triton = false, s3, postgres, keep = false } = {}) {
    this.folder = folder;
    this.options = { triton, s3, postgres, keep };
    this.logFile = join(folder, 'up.log');
    this.env = {
      ...process.env,
      PERCH_CONFIG_DIR: join(folder, 'config'),
      PERCH_URL: '',
      PERCH_API_KEY: '',
      PERCH_CONTEXT: '',
      PERCH_ROUTER_URL: '',
    };
  }

  async start() {
    // PostgreSQL does not run as root; its own user must get to the data below.
    if (process.getuid?.() === 0) await chmod(this.folder, 0o711);
    const { triton, s3, postgres, keep } = this.options;
    const args = [cli, 'up', '--json', '--port', '0', '--data', join(this.folder, 'data')];
    if (triton) args.push('--triton');
    if (s3) args.push('--s3', s3);
    if (postgres) args.push('--postgres', postgres);
    if (!keep) args.push('--stop-with-stdin');
    const log = await open(this.logFile, 'a', 0o600);
    this.child = spawn(process.execPath, args, {
      env: this.env,
      stdio: [keep ? 'ignore' : 'pipe', log.fd, log.fd],
      detached: true, // Ctrl-C reaches who started it, who stops it in order
    });
    await log.close();
    this.child.stdin?.on('error', () => undefined);
    this.ended = new Promise((done) => this.child.once('exit', (code, signal) => done(signal ?? code)));
    let gone;
    void this.ended.then((how) => {
      gone = how;
    });
    const deadline = Date.now() + startTimeoutMs;
    while (Date.now() < deadline) {
      const text = await readFile(this.logFile, 'utf8');
      const line = text.split('\n').find((one) => one.startsWith('{"up":true'));
      if (line?.endsWith('}')) return this.started(JSON.parse(line));
      if (gone !== undefined)
        throw new Error(`perch up ended (${gone}):\n${text.trim().split('\n').slice(-25).join('\n')}`);
      await pause(50);
    }
    throw new Error(
      `perch up is not ready after ${startTimeoutMs / 1_000} s:\n${await readFile(this.logFile, 'utf8')}`,
    );
  }

  async started(running) {
    this.running = running;
    const { contexts } = JSON.parse(await readFile(join(running.configDir, 'contexts.json'), 'utf8'));
    this.key = contexts[running.context].apiKey;
    return running;
  }

  /** Runs one command of the CLI; its result as an object. */
  perch(...args) {
    return new Promise((done, fail) => {
      execFile(
        process.execPath,
        [cli, ...args, '-o', 'json'],
        { env: this.env, maxBuffer: 1 << 26 },
        (error, out, words) => {
          if (!error) return done(JSON.parse(out));
          fail(new Error(`perch ${args.join(' ')} exited ${error.code}: ${words.trim()}`));
        },
      );
    });
  }

  /** POST /serve/<path>: status, body, and the version that answered. */
  async serve(path, body) {
    const response = await fetch(`${this.running.router}/serve/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    return { status: response.status, text, version: Number(response.headers.get('x-perch-version')) };
  }

  async stop() {
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.stdin?.end();
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), 60_000);
    const how = await this.ended;
    clearTimeout(late);
    if (how !== 0) throw new Error(`perch up ended with ${how}:\n${await readFile(this.logFile, 'utf8')}`);
  }

  /** Removes what it left; for a stack that is stopped. */
  async clear() {
    const databaseDir = this.running?.databaseDir;
    await rm(this.folder, { recursive: true, force: true });
    if (databaseDir && !databaseDir.startsWith(this.folder)) await rm(databaseDir, { recursive: true, force: true });
  }
}
