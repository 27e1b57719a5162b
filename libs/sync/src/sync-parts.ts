import type { DesiredModel, ObservedModel, ObservedServer } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { BlobCache } from './blobs/blob.cache.ts';
import type { CrashBook } from './crash-book.ts';
import type { UsageReader } from './load-meter.ts';
import type { Crash } from './model-ledger.ts';
import type { RepositoryStore } from './repository.store.ts';
import type { WarmUp } from './sync.apply.ts';
import type { SyncMetrics } from './sync-metrics.ts';
import type { TritonSource } from './triton.source.ts';

export interface SyncParts {
  triton: TritonSource;
  repository: RepositoryStore;
  cache: BlobCache;
  warmUp: WarmUp;
  metrics: SyncMetrics;
  logger: Logger;
  /** Who takes the server down with it; default: not kept beyond this process. */
  crashes?: CrashBook;
  /** How Triton ended since then; default: nobody knows, and a broken connection counts as an end. */
  crashSince?: (sinceMs: number) => Promise<Crash>;
  /** Memory of the server, to measure loads; default: not measured. */
  usage?: UsageReader;
  /** Processes of the server that the kernel killed for memory so far. */
  memoryKills?: () => number | null;
  now?: () => number;
  random?: () => number;
  /** Told each step of each action; crash tests throw from it. */
  trace?: (model: string, step: string) => void;
}

export interface SyncSettings {
  loadsAtOnce: number;
  /** LOADING for longer than this is `stuck`. */
  loadDeadlineMs: number;
  /** Longest time between two looks. */
  idleMs: number;
  /** First time between two looks while something moves; it doubles up to `idleMs`. */
  pollMs: number;
  evictEveryMs: number;
}

export const syncSettings: SyncSettings = {
  loadsAtOnce: 4,
  loadDeadlineMs: 600_000,
  idleMs: 1_000,
  pollMs: 50,
  evictEveryMs: 60_000,
};

/** What the server should hold; `removalsAllowed` false: what is ours and not named here stays all the same. */
export interface Desired {
  models: Record<string, DesiredModel>;
  removalsAllowed: boolean;
}

export interface SyncSnapshot {
  triton: ObservedServer['triton'];
  models: Record<string, ObservedModel>;
  /** What is ours in Triton or the repository. */
  present: string[];
  /** Of these, what is not desired. */
  orphans: string[];
  /** Nothing to do, nothing under way, nothing to be tried again. */
  inStep: boolean;
}
