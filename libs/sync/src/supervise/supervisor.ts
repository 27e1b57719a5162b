import { join } from 'node:path';
import { digestOf, type Supervision } from '@perch/contracts';
import { type Logger, pause } from '@perch/platform';
import { ConsoleSource } from './console.source.ts';
import { describeEnd, type EndKind } from './exit.decide.ts';
import { PidStore } from './pid.store.ts';
import { decideRestart, type RestartSettings, restartSettings } from './restart.decide.ts';
import { ServerLife } from './server-life.ts';

export interface SupervisorSettings {
  command: string;
  args: readonly string[];
  /** The server's environment: without secrets of the agent, since models run in it. */
  env: Record<string, string | undefined>;
  /** For the pid file and the console. */
  folder: string;
  restart: RestartSettings;
  /** From SIGTERM to SIGKILL. */
  exitTimeoutMs: number;
}

export interface SupervisorParts {
  logger: Logger;
  /** Each line that the server writes. */
  onConsole(line: string): void;
  now?(): number;
}

/** How the server ended, in words, and how much that says about what it was doing. */
export interface ServerEnd {
  atMs: number;
  kind: EndKind;
  words: string;
}

const consoleEveryMs = 250;
const lookEveryMs = 5_000;
const shownLines = 40;
/** A broken connection may be seen before the end of the process is. */
const endPatienceMs = 1_500;
const endPollMs = 20;

/** The parent of one model server: starts it, starts it again, ends it, and can tell how it ended. */
export class Supervisor {
  private readonly settings: SupervisorSettings;
  private readonly parts: SupervisorParts;
  private readonly pids: PidStore;
  private readonly console: ConsoleSource;
  private readonly stopped = new AbortController();
  private readonly listeners: (() => void)[] = [];
  private readonly command: string;
  private life: ServerLife | undefined;
  private failures = 0;
  private answered = false;
  private report: Supervision = { state: 'starting', restarts: 0, lastExit: null, console: [] };
  private newestEnd: ServerEnd | undefined;
  private loop: Promise<void> | undefined;
  private watch: Promise<void> | undefined;

  constructor(
    parts: SupervisorParts,
    settings: Partial<SupervisorSettings> & Pick<SupervisorSettings, 'command' | 'folder'>,
  ) {
    this.parts = parts;
    this.settings = { args: [], env: {}, restart: restartSettings, exitTimeoutMs: 35_000, ...settings };
    this.pids = new PidStore(join(settings.folder, 'triton.pid'));
    this.console = new ConsoleSource(join(settings.folder, 'triton.log'), parts.onConsole);
    this.command = digestOf({ command: this.settings.command, args: this.settings.args });
  }

  /** Undefined between two lives. */
  get pid(): number | undefined {
    return this.life?.over ? undefined : this.life?.pid;
  }

  get supervision(): Supervision {
    return this.report;
  }

  /** How it ended last; undefined: it has not. */
  get lastEnd(): ServerEnd | undefined {
    return this.newestEnd;
  }

  /** Processes of the server that the kernel killed for memory in this life; null: not known. */
  get memoryKills(): number | null {
    const { life } = this;
    // A command that moves itself into another cgroup may have done so since the last look.
    if (life?.pid !== undefined && !life.over) life.oom.follow(life.pid);
    return life?.oom.read().own ?? null;
  }

  /** Its end, if it ended after `sinceMs`. One that is under way is waited for. */
  async endSince(sinceMs: number): Promise<ServerEnd | undefined> {
    const until = Date.now() + endPatienceMs;
    while (Date.now() < until) {
      if (this.newestEnd && this.newestEnd.atMs >= sinceMs) return this.newestEnd;
      await pause(endPollMs);
    }
    return undefined;
  }

  /** The newest lines of the console, oldest first. */
  tail(count: number): string[] {
    return this.console.tail(count);
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Takes over the server of an agent that died, if its command is still the wanted one; else starts one. */
  async start(): Promise<void> {
    await this.console.open();
    this.life = (await this.adopt()) ?? this.begin();
    this.loop = this.run(this.life);
    this.watch = this.look();
  }

  /** The server answers. */
  noteAnswer(): void {
    this.answered = true;
    if (this.report.state === 'starting') this.tell({ state: 'running' });
  }

  /** Ends the server and starts it again at once. */
  async restart(reason: string): Promise<void> {
    const { life } = this;
    if (!life || life.over || this.stopped.signal.aborted) return;
    this.parts.logger.warn('model server is restarted', { reason });
    this.tell({ state: 'stopping' });
    await life.end(this.settings.exitTimeoutMs);
  }

  /** Ends the server for good. */
  async stop(): Promise<void> {
    this.stopped.abort();
    this.tell({ state: 'stopping' });
    await this.life?.end(this.settings.exitTimeoutMs);
    await Promise.all([this.loop, this.watch]);
    await this.console.drain();
  }

  private async adopt(): Promise<ServerLife | undefined> {
    const found = this.pids.read();
    if (!found) return undefined;
    const { logger } = this.parts;
    const life = ServerLife.adopt(found.pid, found.startTime, this.now());
    if (found.command === this.command) {
      logger.info('model server of an earlier agent taken over', { pid: found.pid });
      return life;
    }
    logger.warn('model server of an earlier agent is ended: it was started by another command', { pid: found.pid });
    await life.end(this.settings.exitTimeoutMs);
    return undefined;
  }

  private begin(): ServerLife {
    const { command, args, env } = this.settings;
    this.answered = false;
    const life = ServerLife.start({ command, args, env, consolePath: this.console.path }, this.now());
    if (life.pid !== undefined) this.pids.write(life.pid, this.command);
    this.parts.logger.info('model server started', { pid: life.pid ?? null, restarts: this.report.restarts });
    return life;
  }

  private async run(first: ServerLife): Promise<void> {
    const { signal } = this.stopped;
    for (let life = first; ; ) {
      const asked = await this.afterEnd(life);
      if (signal.aborted) return;
      if (!asked) await this.waitBeforeRestart(life);
      if (signal.aborted) return;
      this.tell({ state: 'starting', restarts: this.report.restarts + 1 });
      life = this.begin();
      this.life = life;
      // Stopped at just this moment: then nobody else ends it.
      if (signal.aborted) await life.end(this.settings.exitTimeoutMs);
    }
  }

  /** Waits for the end, clears up behind it, and notes how it came. Resolves to whether it was asked for. */
  private async afterEnd(life: ServerLife): Promise<boolean> {
    const end = await life.ended;
    life.killGroup();
    this.pids.clear();
    await this.console.drain();
    const { words, kind } = describeEnd({
      ...end,
      asked: life.asked,
      oomKills: life.oom.read(),
      ramBytes: life.ramBytes ?? null,
      limitBytes: life.limitBytes ?? null,
    });
    this.newestEnd = { atMs: this.now(), kind, words };
    const unasked = !life.asked;
    if (unasked) this.parts.logger.error('model server ended', { how: words, pid: life.pid ?? null });
    this.tell({ lastExit: words, console: unasked ? this.console.tail(shownLines) : [] });
    return life.asked;
  }

  private async waitBeforeRestart(life: ServerLife): Promise<void> {
    // A server that never answered is as good as one that ended at once, however long it tried.
    const upMs = this.answered ? this.now() - life.startedAtMs : 0;
    const { failures, waitMs } = decideRestart({ upMs, failuresBefore: this.failures }, this.settings.restart);
    this.failures = failures;
    this.tell({ state: 'backing_off' });
    this.parts.logger.info('model server is started again after a pause', { waitMs, failures });
    await pause(waitMs, this.stopped.signal);
  }

  /** Keeps up with the console and the memory. */
  private async look(): Promise<void> {
    const { signal } = this.stopped;
    for (let at = 0; !signal.aborted; at += consoleEveryMs) {
      if (at % lookEveryMs === 0) this.life?.look();
      await this.console.drain().catch(() => undefined);
      await pause(consoleEveryMs, signal);
    }
  }

  private tell(change: Partial<Supervision>): void {
    this.report = { ...this.report, ...change };
    for (const listener of this.listeners) listener();
  }

  private now(): number {
    return this.parts.now?.() ?? Date.now();
  }
}
