import { readdirSync, readFileSync } from 'node:fs';

/** One process as /proc shows it. */
interface Stat {
  pid: number;
  parent: number;
  group: number;
  state: string;
  /** In clock ticks since the machine started: with the pid it names one process for ever. */
  startTime: number;
}

function readStat(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may hold anything, also brackets.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return {
      pid,
      state: fields[0]!,
      parent: Number(fields[1]),
      group: Number(fields[2]),
      startTime: Number(fields[19]),
    };
  } catch {
    return undefined; // gone, or no /proc on this system
  }
}

/** Start time of a process that lives; undefined: there is none (a dead one that waits for its parent counts as none). */
export function startTimeOf(pid: number): number | undefined {
  const stat = readStat(pid);
  return stat && stat.state !== 'Z' && stat.state !== 'X' ? stat.startTime : undefined;
}

/** Number of the machine's running system: a process of an earlier one is not meant by the same pid. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** The process, its children and theirs: back-ends run models in processes of their own. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(Number(name));
    if (stat) children.set(stat.parent, [...(children.get(stat.parent) ?? []), stat.pid]);
  }
  const tree = [root];
  for (let n = 0; n < tree.length; n += 1) tree.push(...(children.get(tree[n]!) ?? []));
  return tree;
}

const kib = (text: string, field: string): number | undefined => {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text);
  return found ? Number(found[1]) * 1024 : undefined;
};

/** What pages of the process count when those it shares are split between their users; `undefined` where that is not shown. */
function proportionalBytes(pid: number): number | undefined {
  try {
    return kib(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'), 'Pss');
  } catch {
    return undefined;
  }
}

function residentBytes(pid: number): number {
  try {
    return kib(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmRSS') ?? 0;
  } catch {
    return 0;
  }
}

/**
 * RAM of a process tree. `exact` splits shared pages between their users, for which the kernel walks all of them: for a
 * figure that is kept. Else the sum of what is resident, which costs next to nothing and counts shared pages twice.
 * Undefined when there is no such process.
 */
export function treeBytes(root: number, exact: boolean): number | undefined {
  if (startTimeOf(root) === undefined) return undefined;
  const bytesOf = (pid: number) => (exact ? proportionalBytes(pid) : undefined) ?? residentBytes(pid);
  return processTree(root).reduce((sum, pid) => sum + bytesOf(pid), 0);
}

/** The one process of that name whose arguments name the port; undefined: none, or several. */
export function findServer(port: number, defaultPort: number): number | undefined {
  const found = readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const [command = '', ...args] = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (!/(^|\/)tritonserver$/.test(command)) return false;
      const text = args.join('\n');
      const given = /^--grpc-port[=\n](\d+)$/m.exec(text)?.[1];
      return Number(given ?? defaultPort) === port;
    } catch {
      return false;
    }
  });
  return found.length === 1 ? Number(found[0]) : undefined;
}
