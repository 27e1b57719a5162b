import type { IndexState } from '@perch/triton/control';
import type { ModelVersion } from '../models/model-version.ts';
import { byNumber } from './version.plan.ts';

/** One version as the index shows it. `runtime` is there while it serves. */
export interface VersionEntry {
  state: IndexState;
  reason: string;
  runtime: ModelVersion | undefined;
  /** What the runtime was opened from: equal means there is nothing to do. */
  openedFrom: { newestMs: number; identity: string } | undefined;
}

/** A model this process has tried to load at least once. */
export class ModelEntry {
  readonly versions = new Map<string, VersionEntry>();
  /** Newest change on disk when it was last loaded with success. */
  loadedNewestMs: number | undefined;
  /** Loads and unloads of one model follow one another. */
  private last: Promise<unknown> = Promise.resolve();
  private turns = 0;

  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.turns += 1;
    const turn = this.last.then(work);
    this.last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.turns -= 1;
    }
  }

  /** Nothing is known of it and nobody waits for it: a load of a name that is not on disk leaves no trace. */
  get isBlank(): boolean {
    return this.versions.size === 0 && this.turns === 0;
  }

  version(version: string): VersionEntry {
    const known = this.versions.get(version);
    if (known) return known;
    const entry: VersionEntry = { state: 'UNKNOWN', reason: '', runtime: undefined, openedFrom: undefined };
    this.versions.set(version, entry);
    return entry;
  }

  /** Versions that serve, lowest first. */
  ready(): [string, ModelVersion][] {
    const found: [string, ModelVersion][] = [];
    for (const [version, { state, runtime }] of this.versions)
      if (state === 'READY' && runtime) found.push([version, runtime]);
    return found.sort(([a], [b]) => byNumber(a, b));
  }
}

/** Takes a version out of service: nothing new reaches it from here on, what it accepted is finished. */
export function retire(entry: VersionEntry, onClosed: (error: unknown) => void): Promise<void> {
  const { runtime } = entry;
  if (!runtime) return Promise.resolve();
  entry.state = 'UNLOADING';
  entry.reason = '';
  entry.runtime = undefined;
  entry.openedFrom = undefined;
  return runtime.close().then(
    () => settle(entry),
    (error) => {
      settle(entry);
      onClosed(error);
    },
  );
}

function settle(entry: VersionEntry): void {
  // A load in the meantime has given the entry another life.
  if (entry.state !== 'UNLOADING') return;
  entry.state = 'UNAVAILABLE';
  entry.reason = 'unloaded';
}
