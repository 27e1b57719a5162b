import { randomBytes } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '@perch/contracts';

interface Holder {
  pid: number;
  /** When the process began, in the kernel's own count: a number given again to another process has another one. */
  begun: string;
}

/** State letter and start time (fields 3 and 22 of its stat line) of a process; '' where the system does not tell. */
async function kernelView(pid: number): Promise<{ state: string; begun: string }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', begun: fields[19] ?? '' };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function holds(holder: Holder): Promise<boolean> {
  if (!isAlive(holder.pid)) return false;
  const { state, begun } = await kernelView(holder.pid);
  if (state === 'Z' || state === 'X') return false; // dead, and its parent has not asked yet
  return begun === '' || holder.begun === '' || begun === holder.begun;
}

async function readHolder(path: string): Promise<Holder | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const { pid, begun } = JSON.parse(text) as Holder;
    return { pid: Number(pid), begun: String(begun ?? '') };
  } catch {
    return { pid: 0, begun: '' };
  }
}

export interface FolderLock {
  /** Whether a lock was left behind by a process that is gone. */
  recovered: boolean;
  release(): Promise<void>;
}

/**
 * One `perch up` a data folder. A lock whose process is gone is taken over. Throws (exit code 1) naming the process
 * that holds it.
 */
export async function lockFolder(path: string): Promise<FolderLock> {
  const own = { pid: process.pid, begun: (await kernelView(process.pid)).begun };
  const staging = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(staging, JSON.stringify(own), { mode: 0o600 });
  let recovered = false;
  try {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const won = await link(staging, path).then(
        () => true,
        () => false,
      );
      if (won) return { recovered, release: () => release(path, own) };
      const holder = await readHolder(path);
      if (holder && (await holds(holder))) {
        if (attempt > 0) throw taken(path, holder.pid);
        await pause(250); // one that was just killed is still ending
        continue;
      }
      recovered = (await takeAway(path, holder)) || recovered;
    }
    throw new AppError('internal', `cannot get the lock ${path}; remove it when no perch up runs`);
  } finally {
    await rm(staging, { force: true });
  }
}

/** Moves a stale lock aside; if in the meantime somebody made a fresh one, that is put back. */
async function takeAway(path: string, stale: Holder | undefined): Promise<boolean> {
  const aside = `${path}.stale.${process.pid}`;
  const moved = await rename(path, aside).then(
    () => true,
    () => false,
  );
  if (!moved) return false;
  const found = await readHolder(aside);
  const fresh = found && found.pid !== stale?.pid && (await holds(found));
  if (fresh) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
  return !fresh;
}

const taken = (path: string, pid: number) =>
  new AppError(
    'internal',
    `perch up already runs on this data folder (process ${pid}); stop it (kill ${pid}) or give --data another folder`,
    {
      details: { pid, lock: path },
    },
  );

async function release(path: string, own: Holder): Promise<void> {
  const holder = await readHolder(path);
  if (holder?.pid === own.pid) await rm(path, { force: true });
}
