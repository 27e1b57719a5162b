import { type ArmStats as Counts, latencyBoundsMs } from '@perch/contracts';
import type { ArmStats } from './request-stats.ts';

/** What was counted for one version of one endpoint since its process began. */
export interface VersionCounts extends Counts {
  endpoint: string;
  version: string;
}

const noCounts = (endpoint: string, version: string): VersionCounts => ({
  endpoint,
  version,
  requests: 0,
  errors: 0,
  retries: 0,
  latency: new Array(latencyBoundsMs.length + 1).fill(0),
});

/** Adds one to the other, in place. */
export function addCounts(into: Counts, { requests, errors, retries, latency }: Counts): void {
  into.requests += requests;
  into.errors += errors;
  into.retries += retries;
  latency.forEach((count, place) => {
    into.latency[place]! += count;
  });
}

/** Reads the counts of one serving process, arms of one version together. Costs the request path nothing. */
export class CountSource {
  private readonly arms: ReadonlyMap<string, ArmStats>;
  /** Sum of all figures of a version when it was told last. */
  private readonly told = new Map<string, number>();

  constructor(arms: ReadonlyMap<string, ArmStats>) {
    this.arms = arms;
  }

  /** Versions whose counts changed since they were asked for last. */
  changed(): VersionCounts[] {
    const sums = new Map<string, number>();
    for (const { labels, requests, retries } of this.arms.values()) {
      const key = `${labels.endpoint} ${labels.version}`;
      sums.set(key, (sums.get(key) ?? 0) + requests + retries);
    }
    const news = new Map<string, VersionCounts>();
    for (const [key, sum] of sums) {
      if (sum === (this.told.get(key) ?? 0)) continue;
      this.told.set(key, sum);
      const [endpoint, version] = key.split(' ') as [string, string];
      news.set(key, noCounts(endpoint, version));
    }
    for (const { labels, latency, requests, errors, retries } of this.arms.values()) {
      const counts = news.get(`${labels.endpoint} ${labels.version}`);
      if (counts) addCounts(counts, { requests, errors, retries, latency: latency ? [...latency] : [] });
    }
    return [...news.values()];
  }
}
