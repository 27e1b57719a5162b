import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const root = join(import.meta.dirname, '../..');

/** What a process cost so far. */
export interface Usage {
  queries: number;
  cpuSeconds: number;
  rssBytes: number;
}

/** A control plane as a process of its own. */
export class ControlPlaneProcess {
  address = '';
  private child: ChildProcess | undefined;

  constructor(
    readonly name: string,
    private readonly env: Record<string, string>,
    private readonly logFile: string,
  ) {}

  async start(more: Record<string, string> = {}): Promise<this> {
    const main = join(root, 'apps/control-plane/dist/main.js');
    if (!existsSync(main)) throw new Error(`${main} is missing: run \`npm run build\` first`);
    const listen = this.address ? new URL(this.address).host : '127.0.0.1:0';
    const child = spawn(process.execPath, [main], {
      env: { PATH: process.env['PATH'], PERCH_LOG_LEVEL: 'info', ...this.env, ...more, PERCH_LISTEN: listen },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    const log = createWriteStream(this.logFile, { flags: 'a' });
    child.stderr!.pipe(log, { end: false });
    child.stdout!.pipe(log, { end: false });
    await this.untilListening(child);
    return this;
  }

  async stop(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill('SIGTERM');
    await ended;
  }

  async metrics(): Promise<string> {
    const answer = await fetch(`${this.address}/metrics`, { signal: AbortSignal.timeout(30_000) });
    return answer.text();
  }

  async usage(): Promise<Usage> {
    const text = await this.metrics();
    return {
      queries: sumOf(text, 'perch_database_queries_total'),
      cpuSeconds: sumOf(text, 'process_cpu_seconds_total'),
      rssBytes: sumOf(text, 'process_resident_memory_bytes'),
    };
  }

  private async untilListening(child: ChildProcess): Promise<void> {
    await new Promise<void>((done, fail) => {
      child.once('exit', (code) => fail(new Error(`${this.name} ended (${code}); its log: ${this.logFile}`)));
      createInterface({ input: child.stdout! }).on('line', (line) => {
        if (!line.includes('"listening"')) return;
        this.address = JSON.parse(line).address;
        done();
      });
    });
  }
}

/** Sum of a metric over its labels, from Prometheus' text. */
export function sumOf(text: string, metric: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith(`${metric} `) || line.startsWith(`${metric}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

const ticksPerSecond = 100;

/** CPU time of a process and of all below it, those that ended included; 0 where there is no /proc. */
export function treeCpuSeconds(pid: number): number {
  if (!existsSync('/proc/self/stat')) return 0;
  const parents = new Map<number, { parent: number; ticks: number }>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      const own = Number(fields[11]) + Number(fields[12]);
      const ended = Number(name) === pid ? Number(fields[13]) + Number(fields[14]) : 0;
      parents.set(Number(name), { parent: Number(fields[1]), ticks: own + ended });
    } catch {
      // it ended while we looked
    }
  }
  let ticks = 0;
  for (const [id, one] of parents) if (id === pid || one.parent === pid) ticks += one.ticks;
  return ticks / ticksPerSecond;
}
