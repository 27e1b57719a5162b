import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { tritonCommand } from '../../scripts/real-triton.mjs';

const root = join(import.meta.dirname, '../..');

/** A model server of Triton's protocol on loopback, with a repository of its own; the embedded engine or a real one. */
export interface ModelServer {
  kind: 'engine' | 'triton';
  /** `host:port` each. */
  http: string;
  grpc: string;
  metrics: string;
  repository: string;
  /** Where its log lies, as `server.log`. */
  folder: string;
  pid: number;
  /** Resolves to the exit code when the process is gone; null when a signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Stops (unless that has happened) and starts again on the same ports and repository. */
  restart(): Promise<void>;
  /** The last lines it wrote. */
  tail(lines?: number): Promise<string>;
  /** Stops and removes the folder. */
  remove(): Promise<void>;
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

interface Start {
  command: string;
  args: string[];
  env: Record<string, string | undefined>;
  /** Resolves when the server answers; rejects are left to the exit of the process. */
  ready: (child: ChildProcess, alive: () => boolean) => Promise<void>;
}

class ServerProcess {
  private child: ChildProcess | undefined;
  private readonly logFile: string;

  constructor(
    private readonly name: string,
    folder: string,
    private readonly start: Start,
  ) {
    this.logFile = join(folder, 'server.log');
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  async run(): Promise<void> {
    const { command, args, env, ready } = this.start;
    const child = spawn(command, args, { env: env as NodeJS.ProcessEnv, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    const log = createWriteStream(this.logFile, { flags: 'a' });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    let ended = false;
    const died = new Promise<never>((_done, fail) => {
      child.once('error', fail);
      child.once('exit', (code) => {
        ended = true;
        void this.tail().then((tail) => fail(new Error(`${this.name} ended (${code}) while it started: ${tail}`)));
      });
    });
    died.catch(() => undefined);
    await Promise.race([ready(child, () => !ended), died]);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const { child } = this;
    if (!child) return null;
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), 15_000);
    await ended;
    clearTimeout(late);
    return child.exitCode;
  }

  async tail(lines = 15): Promise<string> {
    const text = await readFile(this.logFile, 'utf8').catch(() => '');
    return text.trim().split('\n').slice(-lines).join('\n');
  }
}

function serverOf(
  kind: ModelServer['kind'],
  process: ServerProcess,
  at: { folder: string; http: string; grpc: string; metrics: string; repository: string },
): ModelServer {
  const { folder } = at;
  return {
    kind,
    ...at,
    get pid() {
      return process.pid;
    },
    stop: (signal) => process.stop(signal),
    async restart() {
      await process.stop();
      await process.run();
    },
    tail: (lines) => process.tail(lines),
    async remove() {
      await process.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answersReady(http: string, alive: () => boolean): Promise<void> {
  const until = Date.now() + 60_000;
  while (alive()) {
    const ready = await fetch(`http://${http}/v2/health/ready`).then((answer) => answer.ok, () => false); // biome-ignore format: one row
    if (ready) return;
    if (Date.now() > until) throw new Error(`${http} was not ready within 60 s`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/**
 * Starts a real Triton. `repository`: an existing folder that stays; default: one of its own below the temporary folder.
 * `ports` (HTTP, gRPC, metrics): default free ones.
 */
export async function startTriton(
  options: { id?: string; repository?: string; extra?: string[]; ports?: [number, number, number] } = {},
): Promise<ModelServer> {
  const folder = await mkdtemp(join(tmpdir(), 'perch-triton-'));
  const repository = options.repository ?? join(folder, 'models');
  await mkdir(repository, { recursive: true });
  // A port that was free a moment ago may be taken by another test: then others are tried.
  for (let attempt = 1; ; attempt += 1) {
    const [httpPort, grpcPort, metricsPort] = options.ports ?? ((await freePorts(3)) as [number, number, number]);
    const http = `127.0.0.1:${httpPort}`;
    const { command, args, env } = tritonCommand({
      repository,
      httpPort,
      grpcPort,
      metricsPort,
      id: options.id,
      extra: options.extra,
    });
    const process = new ServerProcess('tritonserver', folder, {
      command,
      args,
      env,
      ready: (_child, alive) => answersReady(http, alive),
    });
    const at = { folder, http, grpc: `127.0.0.1:${grpcPort}`, metrics: `127.0.0.1:${metricsPort}`, repository };
    try {
      await process.run();
      return serverOf('triton', process, at);
    } catch (error) {
      await process.stop('SIGKILL');
      if (attempt === 3) throw error;
    }
  }
}

/** Starts the built engine (`npm run build`) as a process of its own. */
export async function startEngine(
  options: { id?: string; repository?: string; env?: Record<string, string>; ports?: [number, number, number] } = {},
): Promise<ModelServer> {
  const main = join(root, 'apps/engine/dist/main.js');
  if (!existsSync(main)) throw new Error(`${main} is missing: run \`npm run build\` first`);
  const folder = await mkdtemp(join(tmpdir(), 'perch-engine-'));
  const repository = options.repository ?? join(folder, 'models');
  const [http, grpc, metrics] = (options.ports ?? [0, 0, 0]).map((port) => `127.0.0.1:${port}`);
  const bound = { http: http!, grpc: grpc!, metrics: metrics! };
  const env: Record<string, string | undefined> = {
    PATH: globalThis.process.env['PATH'],
    PERCH_ENGINE_REPOSITORY: repository,
    PERCH_ENGINE_ID: options.id,
    PERCH_ENGINE_HTTP: bound.http,
    PERCH_ENGINE_GRPC: bound.grpc,
    PERCH_ENGINE_METRICS: bound.metrics,
    ...options.env,
  };
  const process = new ServerProcess('engine', folder, {
    command: globalThis.process.execPath,
    args: [main],
    env,
    ready: (child) =>
      new Promise<void>((done) => {
        createInterface({ input: child.stdout! }).on('line', (line) => {
          if (!line.includes('"listening"')) return;
          const { http, grpc, metrics } = JSON.parse(line) as typeof bound;
          Object.assign(bound, { http, grpc, metrics });
          // A restart comes back where everybody looks for it.
          Object.assign(env, { PERCH_ENGINE_HTTP: http, PERCH_ENGINE_GRPC: grpc, PERCH_ENGINE_METRICS: metrics });
          done();
        });
      }),
  });
  await process.run();
  return serverOf('engine', process, { folder, ...bound, repository });
}

/** Files of one model; a version is a folder of that number. */
export interface ModelFiles {
  config?: string;
  versions: Record<string, Uint8Array | undefined>;
}

/** Puts a model into a repository in one step, in place of what was there. */
export async function putModel(repository: string, name: string, files: ModelFiles): Promise<void> {
  const staging = await mkdtemp(join(tmpdir(), 'perch-model-'));
  for (const [version, bytes] of Object.entries(files.versions)) {
    await mkdir(join(staging, version));
    if (bytes) await writeFile(join(staging, version, 'model.onnx'), bytes);
  }
  if (files.config !== undefined) await writeFile(join(staging, 'config.pbtxt'), files.config);
  const target = join(repository, name);
  await rm(target, { recursive: true, force: true });
  await rename(staging, target).catch(async () => {
    await cp(staging, target, { recursive: true });
    await rm(staging, { recursive: true, force: true });
  });
}
