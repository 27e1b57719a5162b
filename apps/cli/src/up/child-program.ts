import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '@perch/contracts';
import type { Watchdog } from './watchdog.source.ts';

export interface Launch {
  command: string;
  args: string[];
  env: Record<string, string | undefined>;
  /** Resolves with what it says about itself once it listens; default: its log line "listening". */
  ready?: (signal: AbortSignal) => Promise<Record<string, string>>;
}
export interface ChildWords {
  say(sentence: string): void;
  /** A child runs again, with another process id. */
  restarted?(): void;
}

const startTimeoutMs = 120_000;
const stopTimeoutMs = 20_000;
const steadyMs = 30_000;
const rotateBytes = 32 * 1024 * 1024;

/** One program of the stack as a child process: started, started again when it dies, stopped. Its words go to a file. */
export class ChildProgram {
  private child: ChildProcess | undefined;
  private ended: Promise<void> = Promise.resolve();
  private stopping = false;
  private failures = 0;
  private restart: NodeJS.Timeout | undefined;

  constructor(
    readonly name: string,
    readonly logFile: string,
    private readonly launch: () => Launch,
    private readonly watchdog: Watchdog,
    private readonly words: ChildWords,
  ) {}

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Starts it and waits until it listens. Throws with the last lines of its log when it ends before or takes too long. */
  async start(cancelled?: AbortSignal): Promise<Record<string, string>> {
    const launch = this.launch();
    await rotate(this.logFile);
    const from = (await stat(this.logFile).catch(() => undefined))?.size ?? 0;
    const log = openSync(this.logFile, 'a', 0o600);
    const begun = Date.now();
    const child = spawn(launch.command, launch.args, {
      env: launch.env as NodeJS.ProcessEnv,
      stdio: ['ignore', log, log],
      detached: true, // a group of its own: Ctrl-C reaches us alone, and we stop them in order
    });
    closeSync(log);
    this.child = child;
    const gone = new AbortController();
    this.ended = new Promise<void>((done) => {
      for (const event of ['error', 'exit'])
        child.once(event, () => {
          gone.abort();
          done();
        });
    });
    if (child.pid) this.watchdog.watch(child.pid);
    const fields = await this.untilReady(launch, from, gone.signal, cancelled).catch(async (error) => {
      await this.kill();
      throw error;
    });
    void this.ended.then(() => this.onEnd(child, begun));
    return fields;
  }

  private async untilReady(
    launch: Launch,
    from: number,
    gone: AbortSignal,
    cancelled: AbortSignal = new AbortController().signal,
  ): Promise<Record<string, string>> {
    const limit = AbortSignal.any([gone, cancelled, AbortSignal.timeout(startTimeoutMs)]);
    const fields = launch.ready
      ? await launch.ready(limit).catch(() => undefined)
      : await this.untilListening(from, limit);
    if (fields && !gone.aborted) return fields;
    if (cancelled.aborted) throw new AppError('cancelled', `${this.name} was stopped while it started`);
    const how = gone.aborted ? `ended (${this.howItEnded()})` : `did not listen within ${startTimeoutMs / 1_000} s`;
    throw new AppError('internal', `${this.name} ${how}. The end of ${this.logFile}:\n${await this.tail(from)}`);
  }

  /** The one line that every program prints when it is bound: `{"msg":"listening","address":…}`. */
  private async untilListening(from: number, limit: AbortSignal): Promise<Record<string, string> | undefined> {
    let at = from;
    let rest = '';
    while (!limit.aborted) {
      const text = await readFrom(this.logFile, at);
      at += Buffer.byteLength(text);
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const fields = listening(line);
        if (fields) return fields;
      }
      await pause(20);
    }
    return undefined;
  }

  private howItEnded(): string {
    const child = this.child;
    if (!child?.pid) return 'it could not be started';
    return child.signalCode ?? `exit code ${child.exitCode}`;
  }

  private onEnd(child: ChildProcess, begun: number): void {
    if (child.pid) this.watchdog.forget(child.pid);
    if (this.stopping || child !== this.child) return;
    this.failures = Date.now() - begun > steadyMs ? 1 : this.failures + 1;
    const delayMs = Math.min(30_000, 500 * 2 ** (this.failures - 1));
    this.words.say(
      `${this.name} ended (${this.howItEnded()}); starting it again in ${delayMs / 1_000} s (${this.logFile})`,
    );
    this.restart = setTimeout(() => void this.again(), delayMs);
  }

  private async again(): Promise<void> {
    if (this.stopping) return;
    const begun = Date.now();
    try {
      await this.start();
      this.words.say(`${this.name} is back`);
      this.words.restarted?.();
    } catch (error) {
      const last = (error as Error).message.trim().split('\n').at(-1);
      if (!this.stopping && this.child) {
        this.words.say(`${this.name} did not start: ${last}`);
        this.onEnd(this.child, begun);
      }
    }
  }

  async stop(): Promise<void> {
    this.stopping = true;
    clearTimeout(this.restart);
    if (!this.running()) return;
    this.child?.kill('SIGTERM');
    const late = setTimeout(() => void this.kill(), stopTimeoutMs);
    await this.ended;
    clearTimeout(late);
    this.sweep();
  }

  /** At once, with whatever it started itself. */
  async kill(): Promise<void> {
    this.sweep();
    this.child?.kill('SIGKILL');
    await this.ended;
    if (this.child?.pid) this.watchdog.forget(this.child.pid);
  }

  private running(): boolean {
    return this.child?.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  private sweep(): void {
    if (!this.child?.pid) return;
    try {
      process.kill(-this.child.pid, 'SIGKILL'); // the group: what a child left behind
    } catch {
      // nothing was left
    }
  }

  async tail(from = 0, lines = 20): Promise<string> {
    const size = (await stat(this.logFile).catch(() => undefined))?.size ?? 0;
    const text = await readFrom(this.logFile, Math.max(from, size - 16_384));
    return text.trim().split('\n').slice(-lines).join('\n') || '(no output)';
  }
}

function listening(line: string): Record<string, string> | undefined {
  if (!line.includes('"listening"')) return undefined;
  try {
    const fields = JSON.parse(line) as Record<string, string>;
    return fields['msg'] === 'listening' ? fields : undefined;
  } catch {
    return undefined;
  }
}

async function readFrom(file: string, from: number): Promise<string> {
  const handle = await open(file).catch(() => undefined);
  if (!handle) return '';
  try {
    const { size } = await handle.stat();
    if (size <= from) return '';
    const buffer = Buffer.alloc(Math.min(size - from, 1024 * 1024));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, from);
    return buffer.subarray(0, bytesRead).toString('utf8');
  } finally {
    await handle.close();
  }
}

/** One earlier file is kept, so that logs end somewhere. */
async function rotate(file: string): Promise<void> {
  const size = (await stat(file).catch(() => undefined))?.size ?? 0;
  if (size > rotateBytes) await rename(file, `${file}.1`).catch(() => undefined);
}
