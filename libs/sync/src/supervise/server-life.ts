import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { pause } from '@perch/platform';
import { memoryLimitBytes, OomCounter } from './memory-limit.source.ts';
import { startTimeOf, treeBytes } from './process.source.ts';

export interface StartOrder {
  command: string;
  args: readonly string[];
  env: Record<string, string | undefined>;
  consolePath: string;
}

interface Ended {
  code: number | null;
  signal: string | null;
  startFault?: string;
}

const pollMs = 100;
/** After SIGKILL; a process that is stuck in the kernel takes its time. */
const killPatienceMs = 10_000;

/** One process of the server from its start, or from when it was found, to its end. Its children are in its process group. */
export class ServerLife {
  readonly startedAtMs: number;
  readonly ended: Promise<Ended>;
  readonly oom = new OomCounter();
  asked = false;
  over = false;
  /** RAM of its process tree when it was last looked at. */
  ramBytes: number | undefined;
  limitBytes: number | undefined;
  readonly pid: number | undefined;

  private constructor(pid: number | undefined, startedAtMs: number, ended: Promise<Ended>) {
    this.pid = pid;
    this.startedAtMs = startedAtMs;
    this.ended = ended.then((end) => {
      this.over = true;
      return end;
    });
    this.look();
  }

  /** A new process at the head of a process group of its own, which outlives the agent if it must. */
  static start({ command, args, env, consolePath }: StartOrder, nowMs: number): ServerLife {
    const console = openSync(consolePath, 'a', 0o600);
    try {
      const child = spawn(command, args, {
        env: env as NodeJS.ProcessEnv,
        detached: true,
        stdio: ['ignore', console, console],
      });
      const ended = new Promise<Ended>((resolve) => {
        child.once('exit', (code, signal) => resolve({ code, signal }));
        child.once('error', (error: NodeJS.ErrnoException) =>
          resolve({ code: null, signal: null, startFault: error.code ?? 'unknown fault' }),
        );
      });
      return new ServerLife(child.pid, nowMs, ended);
    } finally {
      closeSync(console);
    }
  }

  /** A process that an earlier agent started; only that it ended can be seen, not how. */
  static adopt(pid: number, startTime: number, nowMs: number): ServerLife {
    const gone = async (): Promise<Ended> => {
      while (startTimeOf(pid) === startTime) await pause(pollMs);
      return { code: null, signal: null };
    };
    return new ServerLife(pid, nowMs, gone());
  }

  /** Notes what will be asked for when it has ended. */
  look(): void {
    if (this.pid === undefined || this.over) return;
    this.oom.follow(this.pid);
    this.ramBytes = treeBytes(this.pid, false) ?? this.ramBytes;
    this.limitBytes = memoryLimitBytes(this.pid);
  }

  /** Asks it to end, waits for `timeoutMs`, then kills it and all its children. */
  async end(timeoutMs: number): Promise<void> {
    this.asked = true;
    if (this.pid === undefined || this.over) return;
    // To the server alone: it ends its children in order.
    send(this.pid, 'SIGTERM');
    const patience = new AbortController();
    await Promise.race([this.ended, pause(timeoutMs, patience.signal)]);
    patience.abort();
    this.killGroup();
    const last = new AbortController();
    await Promise.race([this.ended, pause(killPatienceMs, last.signal)]);
    last.abort();
  }

  /** What is left of it: children that outlive their server hold its memory. */
  killGroup(): void {
    if (this.pid !== undefined) send(-this.pid, 'SIGKILL');
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // gone already
  }
}
