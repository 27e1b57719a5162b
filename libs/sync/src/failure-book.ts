import { backoffMs } from '@perch/platform';

export interface Failure {
  digest: string;
  reason: string;
  /** Null: it would fail again until its digest changes. */
  retryAtMs: number | null;
  attempts: number;
  /** Also a new Triton would not help. */
  heldBack: boolean;
}

const firstRetryMs = 500;
const longestRetryMs = 30_000;

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
    const before = this.entries.get(model);
    const attempts = (before?.digest === digest ? before.attempts : 0) + 1;
    const retryAtMs = nowMs + backoffMs(attempts, firstRetryMs, longestRetryMs, this.random);
    this.entries.set(model, { digest, reason, retryAtMs, attempts, heldBack: false });
  }

  /** Do not try this digest again. */
  giveUp(model: string, digest: string, reason: string, heldBack = false): void {
    this.entries.set(model, { digest, reason, retryAtMs: null, attempts: 1, heldBack });
  }

  clear(model: string): void {
    this.entries.delete(model);
  }

  /** A new Triton may load what the old one refused; not what ended the old one. */
  clearRefusals(): void {
    for (const [model, { retryAtMs, heldBack }] of this.entries)
      if (retryAtMs === null && !heldBack) this.entries.delete(model);
  }

  keepOnly(models: ReadonlySet<string>): void {
    for (const model of this.entries.keys()) if (!models.has(model)) this.entries.delete(model);
  }

  /** When the next retry is due. */
  nextRetryMs(): number | undefined {
    const due = [...this.entries.values()].flatMap(({ retryAtMs }) => (retryAtMs === null ? [] : [retryAtMs]));
    return due.length > 0 ? Math.min(...due) : undefined;
  }
}
