import { readFileSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import type { OwnPostgres } from './own-postgres.ts';
import type { ModelServer } from './real-triton.ts';
import type { Program } from './stack.ts';

export type PartKind = 'router' | 'agent' | 'control-plane' | 'triton' | 'postgres' | 's3';

/** One process of a fleet, as faults see it. Every method may be called in any state. */
export interface Part {
  readonly kind: PartKind;
  readonly name: string;
  readonly running: boolean;
  kill(): Promise<void>;
  /** SIGTERM: it ends in order, which may take it a while. Absent: nobody is asked that here. */
  end?(): Promise<void>;
  /** Brings it back where it was; tried again for a while, because whatever it needs may be away too. */
  start(): Promise<void>;
  freeze(): void;
  thaw(): void;
}

async function startWithPatience(part: string, start: () => Promise<unknown>): Promise<void> {
  const deadline = Date.now() + 90_000;
  for (;;)
    try {
      await start();
      return;
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`${part} does not come back`, { cause: error });
      await new Promise((next) => setTimeout(next, 500));
    }
}

export function programPart(kind: PartKind, program: Program): Part {
  return {
    kind,
    name: program.name,
    get running() {
      return program.running;
    },
    kill: () => program.stop('SIGKILL'),
    end: () => program.stop('SIGTERM', 60_000),
    start: () => startWithPatience(program.name, async () => program.running || (await program.start())),
    freeze: () => program.freeze(),
    thaw: () => program.thaw(),
  };
}

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/**
 * Python models run in children of Triton that outlive a SIGKILL of it and keep its open connections, so that clients
 * would wait on a dead server; where a container ends, they end too. Each names its parent among its arguments.
 */
async function endChildrenOf(pid: number): Promise<void> {
  for (const entry of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(entry)) continue;
    const words = (await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (!words[0]?.endsWith('triton_python_backend_stub') || !words.includes(String(pid))) continue;
    try {
      process.kill(Number(entry), 'SIGKILL');
    } catch {
      // ended by itself meanwhile
    }
    const region = words.find((word) => /^triton_\w+_shm_region_/.test(word));
    if (region) await rm(`/dev/shm/${region}`, { force: true });
  }
}

/** A model server as an agent's child: the agent starts it, and starts it again. */
export class SupervisedTritonPart implements Part {
  readonly kind = 'triton' as const;

  constructor(
    readonly name: string,
    private readonly pidFile: string,
    private readonly http: string,
  ) {}

  private get pid(): number | undefined {
    try {
      const { pid } = JSON.parse(readFileSync(this.pidFile, 'utf8')) as { pid: number };
      return alive(pid) ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  get running(): boolean {
    return this.pid !== undefined;
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
  }
  async end(): Promise<void> {
    this.signal('SIGTERM');
  }

  async start(): Promise<void> {
    await startWithPatience(this.name, async () => {
      const answer = await fetch(`http://${this.http}/v2/health/live`, { signal: AbortSignal.timeout(2_000) });
      if (!answer.ok) throw new Error(`${this.name} is not live`);
    });
  }

  freeze(): void {
    this.signal('SIGSTOP');
  }
  thaw(): void {
    this.signal('SIGCONT');
  }

  /** Ends it for good; its agent must be gone. */
  async remove(): Promise<void> {
    const { pid } = this;
    if (pid === undefined) return;
    this.signal('SIGKILL');
    await endChildrenOf(pid);
  }

  private signal(signal: NodeJS.Signals): void {
    const { pid } = this;
    if (pid !== undefined) process.kill(pid, signal);
  }
}

/** A model server that is started again by itself a second after it ended, as a platform would, unless it was killed here. */
export class TritonPart implements Part {
  readonly kind = 'triton' as const;
  /** Ends that no fault of ours brought about. */
  ownEnds = 0;
  private wanted = true;
  private starting: Promise<void> | undefined;
  private readonly watch: NodeJS.Timeout;

  constructor(
    readonly name: string,
    readonly server: ModelServer,
  ) {
    this.watch = setInterval(() => void this.look(), 100);
  }

  get running(): boolean {
    return alive(this.server.pid);
  }

  kill(): Promise<void> {
    return this.endBy('SIGKILL');
  }
  end(): Promise<void> {
    return this.endBy('SIGTERM');
  }

  private async endBy(signal: NodeJS.Signals): Promise<void> {
    this.wanted = false;
    await this.starting?.catch(() => undefined);
    const { pid } = this.server;
    await this.server.stop(signal);
    await endChildrenOf(pid);
  }

  async start(): Promise<void> {
    this.wanted = true;
    if (this.running) return;
    this.starting ??= startWithPatience(this.name, () => this.server.restart()).finally(
      () => (this.starting = undefined),
    );
    await this.starting;
  }

  freeze(): void {
    if (this.running) process.kill(this.server.pid, 'SIGSTOP');
  }
  thaw(): void {
    if (this.running) process.kill(this.server.pid, 'SIGCONT');
  }

  async remove(): Promise<void> {
    clearInterval(this.watch);
    this.wanted = false;
    this.thaw();
    await this.starting?.catch(() => undefined);
    const { pid } = this.server;
    await this.server.remove();
    await endChildrenOf(pid);
  }

  private async look(): Promise<void> {
    if (this.running || !this.wanted || this.starting) return;
    this.ownEnds += 1;
    await endChildrenOf(this.server.pid);
    await this.start().catch(() => undefined); // looked at again
  }
}

export function postgresPart(postgres: OwnPostgres): Part {
  let running = true;
  return {
    kind: 'postgres',
    name: 'postgres',
    get running() {
      return running;
    },
    async kill() {
      running = false;
      await postgres.kill();
    },
    async start() {
      if (!running) await startWithPatience('postgres', () => postgres.restart());
      running = true;
    },
    freeze: () => postgres.signal('SIGSTOP'),
    thaw: () => postgres.signal('SIGCONT'),
  };
}

export function s3Part(s3: {
  kill(): Promise<void>;
  restart(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
}): Part {
  let running = true;
  return {
    kind: 's3',
    name: 's3',
    get running() {
      return running;
    },
    async kill() {
      running = false;
      await s3.kill();
    },
    async start() {
      if (!running) await startWithPatience('s3', () => s3.restart());
      running = true;
    },
    freeze: () => s3.signal('SIGSTOP'),
    thaw: () => s3.signal('SIGCONT'),
  };
}
