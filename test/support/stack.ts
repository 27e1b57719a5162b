import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

const root = join(import.meta.dirname, '../..');

/** One of Perch's programs as a child process, on an address of its own choice at first and on the same one ever after. */
export class Program {
  address = '';
  /** Called when it ends though nobody asked for it. An end while it starts is told by `start`. */
  onUnexpectedExit: (words: string) => void = () => undefined;
  private child: ChildProcess | undefined;
  private readonly asked = new WeakSet<ChildProcess>();

  constructor(
    readonly name: string,
    private readonly app: string,
    private readonly env: Record<string, string>,
    private readonly logFile: string,
    private readonly args: readonly string[] = [],
  ) {}

  async start(): Promise<this> {
    const main = join(root, 'apps', this.app, 'dist/main.js');
    if (!existsSync(main)) throw new Error(`${main} is missing: run \`npm run build\` first`);
    const child = spawn(process.execPath, [main, ...this.args], {
      env: { PATH: process.env['PATH'], PERCH_LOG_LEVEL: 'info', PERCH_STOP_DELAY_MS: '0', ...this.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    let up = false;
    child.once('exit', (code, signal) => {
      if (up && !this.asked.has(child)) this.onUnexpectedExit(`${this.name} ended by itself (${code ?? signal})`);
    });
    const log = createWriteStream(this.logFile, { flags: 'a' });
    child.stderr!.pipe(log, { end: false });
    await new Promise<void>((done, fail) => {
      child.once(
        'exit',
        (code) => void this.tail().then((tail) => fail(new Error(`${this.name} ended (${code}): ${tail}`))),
      );
      createInterface({ input: child.stdout! }).on('line', (line) => {
        log.write(`${line}\n`);
        if (!line.includes('"listening"')) return;
        const fields = JSON.parse(line);
        this.listening(fields);
        up = true;
        done();
      });
    });
    return this;
  }

  /** Keeps the port, so that a restart comes back where everybody looks for it. */
  private listening(fields: Record<string, string>): void {
    if (fields['address']) {
      this.address = fields['address'];
      if (this.env['PERCH_LISTEN']) this.env['PERCH_LISTEN'] = new URL(this.address).host;
    }
    for (const [name, variable] of [
      ['http', 'PERCH_ENGINE_HTTP'],
      ['grpc', 'PERCH_ENGINE_GRPC'],
      ['metrics', 'PERCH_ENGINE_METRICS'],
    ] as const)
      if (fields[name] && this.env[variable]) this.env[variable] = fields[name]!.replace(/^https?:\/\//, '');
  }

  get running(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }
  get pid(): number {
    return this.child?.pid ?? 0;
  }
  setting(name: string): string {
    return this.env[name] ?? '';
  }
  set(name: string, value: string): void {
    this.env[name] = value;
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM', patienceMs = 15_000): Promise<void> {
    const child = this.child;
    if (!child || !this.running) return;
    this.asked.add(child);
    const ended = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), patienceMs);
    await ended;
    clearTimeout(late);
  }

  /** SIGSTOP and SIGCONT: it is there, and does nothing. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }
  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  /** SIGKILL and start again, as a crash would have it. */
  async crash(): Promise<void> {
    await this.stop('SIGKILL');
    await this.start();
  }

  async tail(lines = 15): Promise<string> {
    return (await readFile(this.logFile, 'utf8').catch(() => '')).trim().split('\n').slice(-lines).join('\n');
  }
}

export interface StackOptions {
  /** `http` and `grpc` of a model server that is already running (a real Triton), with its repository folder. */
  triton?: { http: string; grpc: string; metrics?: string; repository: string };
  /** Settings of the control plane, e.g. of an S3 store; default: a folder store. */
  store?: Record<string, string>;
  controlPlane?: Record<string, string>;
  router?: Record<string, string>;
  database?: TestDatabase;
}

/** The whole product as its own processes, on loopback and free ports, with a database of its own. */
export class Stack {
  readonly adminKey = `pk_test_${randomBytes(24).toString('base64url')}`;
  readonly joinServer = `pj_test_${randomBytes(24).toString('base64url')}`;
  readonly joinRouter = `pj_test_${randomBytes(24).toString('base64url')}`;
  database!: TestDatabase;
  folder!: string;
  controlPlane!: Program;
  router!: Program;
  agent!: Program;
  engine: Program | undefined;

  static async start(options: StackOptions = {}): Promise<Stack> {
    const stack = new Stack();
    stack.folder = await mkdtemp(join(tmpdir(), 'perch-stack-'));
    stack.database = options.database ?? (await createTestDatabase({ migrated: false }));
    try {
      await stack.startAll(options);
    } catch (error) {
      await stack.stop();
      throw error;
    }
    return stack;
  }

  private async startAll(options: StackOptions): Promise<void> {
    await mkdir(join(this.folder, 'store'));
    this.controlPlane = this.program('control-plane', 'control-plane', {
      PERCH_LISTEN: '127.0.0.1:0',
      PERCH_DATABASE_URL: this.database.url,
      PERCH_BOOTSTRAP_ADMIN_KEY: this.adminKey,
      PERCH_BOOTSTRAP_JOIN_KEY_SERVER: this.joinServer,
      PERCH_BOOTSTRAP_JOIN_KEY_ROUTER: this.joinRouter,
      ...(options.store ?? { PERCH_STORE_URL: `file://${join(this.folder, 'store')}` }),
      ...options.controlPlane,
    });
    await this.controlPlane.start();
    const triton = options.triton ?? (await this.startEngine());
    this.agent = this.program('agent', 'agent', {
      PERCH_LISTEN: '127.0.0.1:0',
      PERCH_CONTROL_URL: this.controlPlane.address,
      PERCH_JOIN_KEY: this.joinServer,
      PERCH_DATA_DIR: join(this.folder, 'agent'),
      PERCH_TRITON_HTTP: triton.http,
      PERCH_TRITON_GRPC: triton.grpc,
      PERCH_TRITON_REPOSITORY: triton.repository,
      PERCH_NAME: 'server-a',
      ...(triton.metrics ? { PERCH_TRITON_METRICS: triton.metrics } : {}),
    });
    this.router = this.program('router', 'router', {
      PERCH_LISTEN: '127.0.0.1:0',
      PERCH_CONTROL_URL: this.controlPlane.address,
      PERCH_JOIN_KEY: this.joinRouter,
      PERCH_DATA_DIR: join(this.folder, 'router'),
      PERCH_NAME: 'router-a',
      ...options.router,
    });
    await Promise.all([this.agent.start(), this.router.start()]);
  }

  private async startEngine(): Promise<NonNullable<StackOptions['triton']>> {
    const repository = join(this.folder, 'repository');
    await mkdir(repository);
    this.engine = await this.program('engine', 'engine', {
      PERCH_ENGINE_HTTP: '127.0.0.1:0',
      PERCH_ENGINE_GRPC: '127.0.0.1:0',
      PERCH_ENGINE_METRICS: '127.0.0.1:0',
      PERCH_ENGINE_REPOSITORY: repository,
    }).start();
    return {
      http: this.engine.setting('PERCH_ENGINE_HTTP'),
      grpc: this.engine.setting('PERCH_ENGINE_GRPC'),
      repository,
    };
  }

  program(name: string, app: string, env: Record<string, string>): Program {
    return new Program(name, app, env, join(this.folder, `${name}.log`));
  }

  get programs(): Program[] {
    return [this.router, this.agent, this.engine, this.controlPlane].filter((program) => program !== undefined);
  }

  async stop(): Promise<void> {
    for (const program of this.programs) await program.stop();
    await this.database.drop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Last lines of every program, for a failed test's message. */
  async logs(): Promise<string> {
    return (
      await Promise.all(this.programs.map(async (program) => `--- ${program.name}\n${await program.tail(25)}`))
    ).join('\n');
  }
}
