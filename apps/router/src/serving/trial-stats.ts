import { labelText } from '../metrics/snapshot.ts';

const maxSeries = 2_000;

/** Counters by labels; a bounded number of series. */
class Series {
  readonly counts = new Map<string, number>();

  add(labels: Record<string, string>): void {
    const key = labelText(labels);
    const count = this.counts.get(key);
    if (count !== undefined || this.counts.size < maxSeries) this.counts.set(key, (count ?? 0) + 1);
  }
}

/** Why stable answered for the candidate. `unready`: none of its servers took the request, or was left after a lost connection. */
export type FallbackReason = 'failed' | 'late' | 'contract' | 'unready';

/** What became of a copy of a request. `dropped`: not sent, for want of room, of time or of a server. */
export type ShadowOutcome = 'agreed' | 'differed' | 'uncompared' | 'dropped';

/** What happens in rollouts beside the counts of requests; `version` is the candidate's throughout, but for faults. */
export class TrialStats {
  readonly fallbacks = new Series();
  readonly refused = new Series();
  readonly faults = new Series();
  readonly shadows = new Series();

  countFallback(endpoint: string, version: number, reason: FallbackReason): void {
    this.fallbacks.add({ endpoint, version: String(version), reason });
  }

  /** Stable would have answered, but the budget was spent. */
  countRefused(endpoint: string, version: number, reason: FallbackReason): void {
    this.refused.add({ endpoint, version: String(version), reason });
  }

  countFault(labels: Readonly<Record<'endpoint' | 'version' | 'arm', string>>, fault: string): void {
    this.faults.add({ ...labels, fault });
  }

  countShadow(endpoint: string, version: number, outcome: ShadowOutcome): void {
    this.shadows.add({ endpoint, version: String(version), outcome });
  }
}
