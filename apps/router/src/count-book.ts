import type { RouterReport } from '@perch/contracts';
import { addCounts, type VersionCounts } from './serving/count.source.ts';

export type ReportedStats = NonNullable<RouterReport['stats']>;

/** Counts to send, and what they are counts of. */
export interface Told {
  keys: string[];
  stats: ReportedStats;
}

/**
 * What all workers of a router counted, and what of it the control plane has not heard yet. A worker that ended keeps
 * what it counted, so that the sums never fall.
 */
export class CountBook {
  private readonly workers = new Map<number, Map<string, VersionCounts>>();
  private readonly ended = new Map<string, VersionCounts>();
  /** In the order in which they are to be told: what was told last stands at the end. */
  private readonly news = new Set<string>();

  hear(worker: number, counts: readonly VersionCounts[]): void {
    let own = this.workers.get(worker);
    if (!own) {
      own = new Map();
      this.workers.set(worker, own);
    }
    for (const one of counts) {
      const key = `${one.endpoint} ${one.version}`;
      own.set(key, one);
      this.news.add(key);
    }
  }

  gone(worker: number): void {
    for (const [key, counts] of this.workers.get(worker) ?? []) {
      const before = this.ended.get(key);
      if (before) addCounts(before, counts);
      else this.ended.set(key, { ...counts, latency: [...counts.latency] });
    }
    this.workers.delete(worker);
  }

  /** At most `limit` of what is news; undefined: nothing is. Not news any more, unless `again` says otherwise. */
  take(limit: number): Told | undefined {
    const keys = [...this.news].slice(0, limit);
    if (keys.length === 0) return undefined;
    const stats: ReportedStats = {};
    for (const key of keys) {
      this.news.delete(key);
      const { endpoint, version, ...counts } = this.sumOf(key);
      stats[endpoint] = { ...stats[endpoint], [version]: counts };
    }
    return { keys, stats };
  }

  /** They were not heard. */
  again(keys: readonly string[]): void {
    for (const key of keys) this.news.add(key);
  }

  /** The control plane knows nothing of this boot: all of it is news. */
  allAgain(): void {
    for (const own of [this.ended, ...this.workers.values()]) for (const key of own.keys()) this.news.add(key);
  }

  private sumOf(key: string): VersionCounts {
    const found = [this.ended, ...this.workers.values()].map((own) => own.get(key)).filter((one) => one !== undefined);
    const sum = { ...found[0]!, latency: [...found[0]!.latency] };
    for (const one of found.slice(1)) addCounts(sum, one);
    return sum;
  }
}
