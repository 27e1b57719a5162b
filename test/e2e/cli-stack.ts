import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const cli = join(import.meta.dirname, '../../apps/cli/dist/main.js');

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}
export interface UpLine {
  up: true;
  controlPlane: string;
  router: string;
  pid: number;
  pids: Record<string, number>;
  dataDir: string;
  databaseDir: string;
  logs: string;
}

/** The built `perch` of one person: own settings folder, own environment. */
export class Person {
  readonly children: ChildProcess[] = [];

  private constructor(readonly folder: string) {}

  static async make(): Promise<Person> {
    const folder = await mkdtemp(join(tmpdir(), 'perch cli '));
    // As root the database runs as another user, who must get through to its own folder.
    if (process.getuid?.() === 0) await chmod(folder, 0o711);
    return new Person(folder);
  }

  private environment(extra: Record<string, string>): NodeJS.ProcessEnv {
    const { PERCH_URL: _u, PERCH_API_KEY: _k, PERCH_CONTEXT: _c, PERCH_ROUTER_URL: _r, ...inherited } = process.env;
    return { ...inherited, PERCH_CONFIG_DIR: join(this.folder, 'config'), ...extra };
  }

  spawn(args: string[], extra: Record<string, string> = {}): ChildProcess {
    const child = spawn(process.execPath, [cli, ...args], {
      env: this.environment(extra),
      stdio: 'pipe',
      cwd: this.folder,
    });
    this.children.push(child);
    return child;
  }

  /** Runs one command to its end. */
  async run(args: string[], options: { input?: string; env?: Record<string, string> } = {}): Promise<Ran> {
    const child = this.spawn(args, options.env);
    const text = { out: '', err: '' };
    child.stdout?.on('data', (chunk) => {
      text.out += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      text.err += chunk;
    });
    child.stdin?.end(options.input ?? '');
    const code = await new Promise<number | null>((done) => child.once('close', done));
    return { code, ...text };
  }

  /** Runs a command that must succeed; its result as an object. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const { code, out, err } = await this.run([...args, '-o', 'json']);
    if (code !== 0) throw new Error(`perch ${args.join(' ')} exited ${code}: ${err}`);
    return JSON.parse(out) as T;
  }

  async up(...args: string[]): Promise<Up> {
    const dataDir = join(this.folder, 'data');
    const child = this.spawn(['up', '--json', '--port', '0', '--data', dataDir, '--stop-with-stdin', ...args]);
    const up = new Up(child);
    await up.ready();
    return up;
  }

  async leave(): Promise<void> {
    for (const child of this.children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

/** A running `perch up`. */
export class Up {
  line!: UpLine;
  words = '';
  private out = '';
  private ended: Promise<number | NodeJS.Signals | null>;

  constructor(readonly child: ChildProcess) {
    child.stdout?.on('data', (chunk) => {
      this.out += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      this.words += chunk;
    });
    this.ended = new Promise((done) => child.once('close', (code, signal) => done(signal ?? code)));
  }

  async ready(): Promise<void> {
    let gone: unknown;
    void this.ended.then((how) => {
      gone = how;
    });
    await until(
      () => this.out.includes('\n') || gone !== undefined,
      120_000,
      () => this.words,
    );
    if (!this.out.startsWith('{"up":true')) throw new Error(`perch up ended (${gone}): ${this.words}`);
    this.line = JSON.parse(this.out) as UpLine;
  }

  /** Exit code, or the signal that ended it. */
  async end(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
    if (signal) this.child.kill(signal);
    else this.child.stdin?.end();
    return this.ended;
  }
}

export async function until(
  look: () => boolean | Promise<boolean>,
  timeoutMs: number,
  words: () => string = () => '',
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await look())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms. ${words()}`);
    await new Promise((next) => setTimeout(next, 30));
  }
}

/** Runs, and is no zombie. */
export async function runs(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !/\) [ZX] /.test(stat);
}
