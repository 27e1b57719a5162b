import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';

/** Folders of the memory controller of a process, the nearest first; both versions of cgroups, inside a container or not. */
function cgroupFolders(pid: number): string[] {
  const root = '/sys/fs/cgroup';
  let text = '';
  try {
    text = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch {
    return [];
  }
  const folders: string[] = [];
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    if (controllers === '') folders.push(join(root, path), root);
    // In a container the path may be the host's; the mount then shows only our own part of it.
    if (controllers?.split(',').includes('memory')) folders.push(join(root, 'memory', path), join(root, 'memory'));
  }
  return folders;
}

function readNumber(path: string, pattern: RegExp): number | undefined {
  try {
    const found = pattern.exec(readFileSync(path, 'utf8'));
    return found ? Number(found[1]) : undefined;
  } catch {
    return undefined;
  }
}

const firstOf = (folders: string[], files: [string, RegExp][]): number | undefined => {
  for (const folder of folders)
    for (const [file, pattern] of files) {
      const value = readNumber(join(folder, file), pattern);
      if (value !== undefined) return value;
    }
  return undefined;
};

/** Processes that were killed for memory; null: not shown on this system. */
export interface OomKills {
  /** In the cgroup of the process. */
  own: number | null;
  /** On the whole machine. */
  machine: number | null;
}

const killsPattern = /^oom_kill (\d+)$/m;
const ownKills = (folders: string[]) =>
  firstOf(folders, [
    ['memory.events', killsPattern],
    ['memory.oom_control', killsPattern],
  ]);
const since = (now: number | undefined, before: number | undefined) =>
  now === undefined || before === undefined ? null : Math.max(0, now - before);

/** Counts kills for memory from now on. A dead process has no cgroup any more, so its folders are noted while it lives. */
export class OomCounter {
  private folders: string[] = [];
  private own: number | undefined;
  private readonly machine = readNumber('/proc/vmstat', killsPattern);

  /** Call now and then: a process may be moved into another cgroup after its start. */
  follow(pid: number): void {
    const folders = cgroupFolders(pid);
    if (folders.length === 0 || folders.join() === this.folders.join()) return;
    this.folders = folders;
    this.own = ownKills(folders);
  }

  read(): OomKills {
    return {
      own: since(ownKills(this.folders), this.own),
      machine: since(readNumber('/proc/vmstat', killsPattern), this.machine),
    };
  }
}

/** RAM that a process may take: its cgroup's limit, else all of the machine's. */
export function memoryLimitBytes(pid: number): number {
  const limits = cgroupFolders(pid).flatMap((folder) => {
    const v2 = readNumber(join(folder, 'memory.max'), /^(\d+)/);
    const v1 = readNumber(join(folder, 'memory.limit_in_bytes'), /^(\d+)/);
    return [v2, v1].filter((limit) => limit !== undefined);
  });
  return Math.min(totalmem(), ...limits);
}
