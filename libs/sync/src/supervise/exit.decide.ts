/** How a process ended and what was known about it at that time. */
export interface ProcessEnd {
  /** Null with a signal, and for a process that was adopted (then both are null). */
  code: number | null;
  signal: string | null;
  /** Somebody told the agent to end it. */
  asked: boolean;
  /** Processes the kernel killed for memory meanwhile: in the server's own cgroup, and on the whole machine; null: not known. */
  oomKills: { own: number | null; machine: number | null };
  /** Most RAM its process tree was seen with, and what it may take; null: not known. */
  ramBytes: number | null;
  limitBytes: number | null;
  /** It could not even be started: why. */
  startFault?: string;
}

/**
 * How much an end says about what the server was doing: `asked` nothing; `unexplained` little (somebody sent SIGKILL, or
 * nobody saw it end); `explained` a lot (it ended by itself, or for memory).
 */
export type EndKind = 'asked' | 'unexplained' | 'explained';

const nearLimit = 0.9;
const mib = (bytes: number) => `${Math.round(bytes / 1024 ** 2)} MiB`;
/** A shell that wrapped the server tells the signal of its child as 128 + n. */
const signalOf = ({ code, signal }: ProcessEnd) =>
  signal ?? (code === 137 ? 'SIGKILL' : code === 139 ? 'SIGSEGV' : code === 134 ? 'SIGABRT' : null);

function memoryWords(end: ProcessEnd): string | undefined {
  const { oomKills, ramBytes, limitBytes } = end;
  const taken = ramBytes === null ? '' : `; it was last seen with ${mib(ramBytes)}`;
  const limit = limitBytes === null ? '' : ` of ${mib(limitBytes)}`;
  if ((oomKills.own ?? 0) > 0) return `killed for memory${taken}${taken ? limit : ''}`;
  if (ramBytes !== null && limitBytes !== null && ramBytes >= nearLimit * limitBytes)
    return `probably killed for memory: SIGKILL${taken}${limit}`;
  if ((oomKills.machine ?? 0) > 0)
    return `probably killed for memory: SIGKILL, and the machine ran out of memory then${taken}`;
  return undefined;
}

/** How it ended, in words for people, and how much that says. */
export function describeEnd(end: ProcessEnd): { words: string; kind: EndKind } {
  const { code } = end;
  const signal = signalOf(end);
  if (end.startFault !== undefined) return { words: `cannot be started: ${end.startFault}`, kind: 'explained' };
  if (end.asked) return { words: signal ? `ended as asked (${signal})` : 'ended as asked', kind: 'asked' };
  if (signal === 'SIGKILL' || (code === null && signal === null)) {
    const memory = memoryWords(end);
    if (memory !== undefined) return { words: memory, kind: 'explained' };
    if (signal === null)
      return { words: 'ended; how is not known, an earlier agent had started it', kind: 'unexplained' };
    return { words: 'killed by SIGKILL; who sent it is not known', kind: 'unexplained' };
  }
  // Somebody may end a server politely past the agent; that is no crash either.
  if (signal === 'SIGTERM' || signal === 'SIGINT') return { words: `ended by ${signal}`, kind: 'unexplained' };
  if (signal !== null) return { words: `crashed with ${signal}`, kind: 'explained' };
  return { words: `exit code ${code}`, kind: 'explained' };
}
