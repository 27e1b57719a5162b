import { backoffMs } from '@perch/platform';

export interface Failure {
  digest: string;
  reason: string;
  /** Null: it would fail again until its digest changes. */
  retryAtMs: number | null;
  attempts: number;
  /** Tries that ended with Triton gone. */
  crashes: number;
}

const firstRetryMs = 500;
const longestRetryMs = 30_000;
const crashesToSuspect = 2;
const crashesToGiveUp = 5;

/** Why tries failed and when the next is due: what cannot be observed. Lost with the process, and then found out again. */
export class FailureBook {
  private readonly entries = new Map<string, Failure>();
  private readonly random: () => number;

  constructor(random: () => number = Math.random) {
    this.random = random;
  }

  get all(): ReadonlyMap<string, Failure> {
    return this.entries;
  }

  /** Try again later, each time after a longer wait. */
  postpone(model: string, digest: string, reason: string, nowMs: number): void {
    const before = this.sameDigest(model, digest);
    const attempts = (before?.attempts ?? 0) + 1;
    const retryAtMs = nowMs + backoffMs(attempts, firstRetryMs, longestRetryMs, this.random);
    this.entries.set(model, { digest, reason, retryAtMs, attempts, crashes: before?.crashes ?? 0 });
  }

  /** Triton went away during a load: tried again a few times, later alone, then given up for good. */
  noteCrash(model: string, digest: string, reason: string, nowMs: number): void {
    const crashes = (this.sameDigest(model, digest)?.crashes ?? 0) + 1;
    this.postpone(model, digest, reason, nowMs);
    const entry = this.entries.get(model)!;
    entry.crashes = crashes;
    if (crashes < crashesToGiveUp) return;
    entry.retryAtMs = null;
    entry.reason = `the model server went away ${crashes} times while it loaded this model: ${reason}`;
  }

  /** Do not try this digest again. */
  giveUp(model: string, digest: string, reason: string): void {
    this.entries.set(model, { digest, reason, retryAtMs: null, attempts: 1, crashes: 0 });
  }

  clear(model: string): void {
    this.entries.delete(model);
  }

  /** A new Triton may load what the old one refused; not what ended the old one. */
  clearRefusals(): void {
    for (const [model, { retryAtMs, crashes }] of this.entries)
      if (retryAtMs === null && crashes === 0) this.entries.delete(model);
  }

  keepOnly(models: ReadonlySet<string>): void {
    for (const model of this.entries.keys()) if (!models.has(model)) this.entries.delete(model);
  }

  suspects(): Set<string> {
    return new Set([...this.entries].filter(([, { crashes }]) => crashes >= crashesToSuspect).map(([model]) => model));
  }

  /** When the next retry is due. */
  nextRetryMs(): number | undefined {
    const due = [...this.entries.values()].flatMap(({ retryAtMs }) => (retryAtMs === null ? [] : [retryAtMs]));
    return due.length > 0 ? Math.min(...due) : undefined;
  }

  private sameDigest(model: string, digest: string): Failure | undefined {
    const before = this.entries.get(model);
    return before?.digest === digest ? before : undefined;
  }
}
