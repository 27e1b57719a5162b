import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Batch } from './batch.ts';
import type { CellLimits, CellListener, CellPort } from './cell.port.ts';
import { FrameReader, frameOf } from './frames.ts';
import { builtEntry } from './thread.port.ts';
import type { FromCell, ToCell } from './wire.ts';

const mebibyte = 1_048_576;
/** What Node maps and does not use, beside what the module may have. */
const mappedMb = 1_536;
const watchEveryMs = 100;
const pageBytes = 4_096;
/** Of 19. */
const niceness = 5;

const works = (command: string, ...given: string[]): boolean => {
  try {
    execFileSync(command, [...given, 'true'], { stdio: 'ignore', timeout: 2_000 });
    return true;
  } catch {
    return false;
  }
};

interface Fences {
  /** Commands that run the next one within a limit, in their order. */
  before: string[];
  network: boolean;
  memory: boolean;
}

let found: Fences | undefined;
/** What this machine has to fence a process in with; looked for once. */
function fencesHere(): Fences {
  if (found) return found;
  const namespace = [['-n'], ['-r', '-n']].find((flags) => works('unshare', ...flags));
  const memory = works('prlimit', '--as=8000000000');
  const death = ['--pdeathsig', 'KILL', '--no-new-privs'];
  const before = [
    ...(namespace ? ['unshare', ...namespace] : []),
    ...(works('setpriv', ...death) ? ['setpriv', ...death] : []),
  ];
  found = { before, network: namespace !== undefined, memory };
  return found;
}

/** What cannot be fenced in on this machine, in words; empty: nothing. */
export function missingFences(): string[] {
  const { network, memory } = fencesHere();
  return [
    ...(network ? [] : ['the network (unshare makes no namespace here): functions of Node refuse it, which can be got around']), // biome-ignore format: one sentence
    ...(memory ? [] : ['address space (there is no prlimit): only resident memory is watched']),
  ];
}

/** The SDK's own code and what it imports; a module reads its files through the router. */
function readable(): string[] {
  const require = createRequire(import.meta.url);
  const roots = new Set<string>();
  const own = dirname(dirname(fileURLToPath(builtEntry('child.entry'))));
  roots.add(realpathSync(own));
  for (const name of ['@perch/contracts', '@perch/platform']) {
    const folder = dirname(realpathSync(require.resolve(`${name}/package.json`)));
    roots.add(join(folder, 'dist'));
    roots.add(join(folder, 'package.json'));
  }
  for (const folder of require.resolve.paths('zod') ?? []) roots.add(folder);
  return [...roots];
}

/** A process of its own: no environment, no files, no other processes; an end to its memory; no network where it can be taken away. */
export class ChildPort implements CellPort {
  readonly kind = 'process';
  residentBytes = 0;
  private readonly child: ChildProcess;
  private readonly pipe: Socket;
  private readonly watch: NodeJS.Timeout;
  private marked = 0;
  private latest = 0;
  private readonly gone: Promise<void>;

  constructor({ heapMb, memoryMb }: CellLimits, listener: CellListener) {
    const { before, memory } = fencesHere();
    const limits = memory ? ['prlimit', `--as=${(memoryMb + mappedMb) * mebibyte}`, '--core=0'] : [];
    const node = [
      process.execPath,
      '--experimental-permission',
      ...readable().map((path) => `--allow-fs-read=${path.endsWith('.json') ? path : `${path}/*`}`),
      '--allow-addons',
      '--no-warnings',
      // its guard regions take more address space than there is
      '--disable-wasm-trap-handler',
      `--max-old-space-size=${heapMb}`,
      fileURLToPath(builtEntry('child.entry')),
    ];
    const [command, ...given] = [...before, ...limits, ...node];
    this.child = spawn(command!, given, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'], env: {}, cwd: '/' });
    standBehind(this.child.pid);
    this.pipe = this.child.stdio[3] as Socket;
    let words = '';
    const reader = new FrameReader<FromCell>(
      (batch) => listener.heard(batch),
      (call) => {
        this.marked = call;
        if (call > 0) this.latest = call;
      },
    );
    this.pipe.on('data', (piece: Buffer) => {
      try {
        reader.push(piece);
      } catch (error) {
        words ||= `it sent what is no message (${(error as Error).message})`;
        this.child.kill('SIGKILL');
      }
    });
    this.pipe.on('error', () => undefined);
    for (const stream of [this.child.stdout!, this.child.stderr!])
      stream.on('data', (piece: Buffer) => {
        const text = piece.toString('utf8');
        if (text.includes('heap out of memory')) words ||= `its heap grew beyond ${heapMb} MB`;
        if (!words) listener.printed(text);
      });
    this.watch = setInterval(() => {
      this.residentBytes = residentOf(this.child.pid);
      if (this.residentBytes <= memoryMb * mebibyte) return;
      words ||= `its process held ${Math.round(this.residentBytes / mebibyte)} MB, more than ${memoryMb} MB`;
      this.child.kill('SIGKILL');
    }, watchEveryMs);
    this.gone = new Promise((resolve) => {
      this.child.once('error', (error) => {
        words ||= error.message;
        clearInterval(this.watch);
        listener.gone(words);
        resolve();
      });
      // 'close': what it said last has been read
      this.child.once('close', (code, signal) => {
        clearInterval(this.watch);
        listener.gone(words || `its process ended (${signal ?? `code ${code}`})`);
        resolve();
      });
    });
  }

  post(batch: Batch<ToCell>): void {
    if (this.pipe.destroyed) return;
    this.pipe.cork();
    for (const piece of frameOf(batch)) this.pipe.write(piece);
    this.pipe.uncork();
  }

  running(): number {
    return this.marked;
  }

  begun(): number {
    return this.latest;
  }

  busyShare(): number {
    return 0;
  }

  async end(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.gone;
  }
}

/** What it starts with, and what it does, is at the cost of modules where there are too few cores: the router goes first. */
function standBehind(pid: number | undefined): void {
  try {
    if (pid) setPriority(pid, niceness);
  } catch {
    // it has ended already
  }
}

/** 0 where the system does not tell. */
function residentOf(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * pageBytes;
  } catch {
    return 0;
  }
}
