import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises';
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
  if (!(holder.pid > 0) || !isAlive(holder.pid)) return false;
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

const limitMs = 5_000;

/**
 * One `perch up` a data folder. A lock whose process is gone is taken over. Throws (exit code 1) naming the process
 * that holds it.
 */
export async function lockFolder(path: string): Promise<FolderLock> {
  const own = { pid: process.pid, begun: (await kernelView(process.pid)).begun };
  const staging = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(staging, JSON.stringify(own), { mode: 0o600 });
  const begun = Date.now();
  let recovered = false;
  let patience = 1; // one that was just killed is still ending
  try {
    while (Date.now() - begun < limitMs) {
      if (await worked(link(staging, path))) return { recovered, release: () => release(path, own) };
      const holder = await readHolder(path);
      if (holder && (await holds(holder)) && patience-- <= 0) throw taken(path, holder.pid);
      if (holder && (await holds(holder))) await pause(250);
      else if (await takeAway(path)) recovered = true;
      else await pause(10);
    }
    throw new AppError('internal', `cannot get the lock ${path}; remove it when no perch up runs`);
  } finally {
    await rm(staging, { force: true });
  }
}

const worked = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );

/**
 * Removes a stale lock. Only one process at a time may: otherwise one could remove the fresh lock that another just made
 * in the place of the stale one both have seen.
 */
async function takeAway(path: string): Promise<boolean> {
  const turn = `${path}.recovery`;
  if (!(await worked(mkdir(turn)))) {
    const since = (await stat(turn).catch(() => undefined))?.mtimeMs ?? Date.now();
    if (Date.now() - since > limitMs / 2) await rmdir(turn).catch(() => undefined); // its process was killed in between
    return false;
  }
  try {
    const holder = await readHolder(path);
    if (!holder || (await holds(holder))) return false;
    await rm(path, { force: true });
    return true;
  } finally {
    await rmdir(turn).catch(() => undefined);
  }
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
