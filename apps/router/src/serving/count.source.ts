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

/** Of what a process tells at a time: more would hold up its requests. */
export const versionsAtOnce = 200;

/** Adds one to the other, in place. */
export function addCounts(
  into: Counts,
  { requests, errors, retries, latency }: Omit<Counts, 'latency'> & { latency: ArrayLike<number> },
): void {
  into.requests += requests;
  into.errors += errors;
  into.retries += retries;
  for (let place = 0; place < latency.length; place += 1) into.latency[place]! += latency[place]!;
}

const totalOf = ({ requests, retries }: ArmStats): number => requests + retries;

/**
 * Reads the counts of one serving process, arms of one version together. Costs the request path nothing but a short
 * pause: some 50 µs for 3,000 arms, and 10 µs for each version that is told.
 */
export class CountSource {
  private readonly arms: ReadonlyMap<string, ArmStats>;
  /** Figures of each arm when it was told last. */
  private readonly told = new Map<ArmStats, number>();
  private next = 0;

  constructor(arms: ReadonlyMap<string, ArmStats>) {
    this.arms = arms;
  }

  /** At most `limit` versions whose counts changed since they were told last; everybody gets a turn. */
  changed(limit: number): VersionCounts[] {
    const arms = [...this.arms.values()];
    const news = new Map<string, VersionCounts>();
    const start = this.next;
    for (let at = 0; at < arms.length; at += 1) {
      const place = (start + at) % arms.length;
      const arm = arms[place]!;
      if (totalOf(arm) === (this.told.get(arm) ?? 0) || news.has(arm.versionKey)) continue;
      if (news.size >= limit) break;
      news.set(arm.versionKey, noCounts(arm.labels.endpoint, arm.labels.version));
      this.next = place + 1;
    }
    if (news.size === 0) return [];
    for (const arm of arms) {
      const counts = news.get(arm.versionKey);
      if (!counts) continue;
      const { requests, errors, retries, latency } = arm;
      addCounts(counts, { requests, errors, retries, latency: latency ?? [] });
      this.told.set(arm, totalOf(arm));
    }
    if (this.told.size > 2 * arms.length) this.forget(new Set(arms));
    return [...news.values()];
  }

  private forget(live: ReadonlySet<ArmStats>): void {
    for (const arm of this.told.keys()) if (!live.has(arm)) this.told.delete(arm);
  }
}
