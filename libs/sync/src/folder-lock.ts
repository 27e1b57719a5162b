import { randomUUID } from 'node:crypto';
import { link, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { AppError } from '@perch/contracts';
import { pause } from '@perch/platform';
import { z } from 'zod';
import { bootId, startTimeOf } from './supervise/process.source.ts';

const holder = z.object({
  host: z.string(),
  bootId: z.string(),
  pid: z.number().int(),
  startTime: z.number(),
  id: z.string(),
});
type Holder = z.infer<typeof holder>;

const renewMs = 5_000;
/** A holder on another machine (or in another container) that was silent for this long is gone. */
const silentMs = 20_000;
const settleMs = 20;

/**
 * One program a folder. On the same machine the holder's process is looked at; elsewhere (a shared disk) only the file's
 * time can be.
 */
export class FolderLock {
  private readonly path: string;
  private readonly me: Holder;
  private timer: NodeJS.Timeout | undefined;

  constructor(folder: string) {
    this.path = join(folder, 'lock');
    const startTime = startTimeOf(process.pid) ?? 0;
    this.me = { host: hostname(), bootId: bootId(), pid: process.pid, startTime, id: randomUUID() };
  }

  /** Throws `conflict` while another program holds the folder. */
  async take(): Promise<void> {
    const aside = `${this.path}.${this.me.id}`;
    await writeFile(aside, JSON.stringify(this.me), { mode: 0o600 });
    try {
      for (let tries = 0; ; tries += 1) {
        if (await this.link(aside)) break;
        const other = await this.read();
        if (other === undefined && tries < 3) continue; // let go just now
        if (other && (tries >= 3 || (await this.isHeld(other)))) throw heldFault(this.path, other);
        await rm(this.path, { force: true });
      }
    } finally {
      await rm(aside, { force: true });
    }
    // Two that found the same dead holder: the later one removed the earlier one's file.
    await pause(settleMs);
    const winner = await this.read();
    if (winner?.id !== this.me.id) throw heldFault(this.path, winner ?? this.me);
    this.timer = setInterval(() => void this.renew(), renewMs);
    this.timer.unref();
  }

  async release(): Promise<void> {
    clearInterval(this.timer);
    if ((await this.read())?.id === this.me.id) await rm(this.path, { force: true });
  }

  private link(aside: string): Promise<boolean> {
    return link(aside, this.path).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
  }

  private async read(): Promise<Holder | undefined> {
    try {
      return holder.parse(JSON.parse(await readFile(this.path, 'utf8')));
    } catch {
      return undefined;
    }
  }

  private async isHeld(other: Holder): Promise<boolean> {
    if (other.host === this.me.host)
      return other.bootId === this.me.bootId && startTimeOf(other.pid) === other.startTime && other.startTime !== 0;
    const age = Date.now() - (await stat(this.path).catch(() => ({ mtimeMs: 0 }))).mtimeMs;
    return age < silentMs;
  }

  private async renew(): Promise<void> {
    const now = new Date();
    await utimes(this.path, now, now).catch(() => undefined);
  }
}

const heldFault = (path: string, { host, pid }: Holder) =>
  new AppError(
    'conflict',
    `${path}: an agent (process ${pid} on ${host}) uses this data folder; give each agent its own PERCH_DATA_DIR`,
    { terminal: true },
  );
