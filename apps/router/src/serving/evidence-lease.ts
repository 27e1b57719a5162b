/** A clock that never goes back and that all processes of a machine share, in ms. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/**
 * When the control plane last took a report. Past a rollout's lease nobody watches its candidate, so the candidate gets
 * nothing and nothing is counted.
 */
export class EvidenceLease {
  /** By `performance.now()` of this process. */
  private acceptedAt = Number.NEGATIVE_INFINITY;

  /** A report that left at this time, by `monotonicMs`, was accepted: so late at least it was heard. */
  accepted(atMs: number): void {
    const here = performance.now() - (monotonicMs() - atMs);
    this.acceptedAt = Math.max(this.acceptedAt, here);
  }

  /** `now` by `performance.now()`. */
  isOver(leaseMs: number, now: number): boolean {
    return now - this.acceptedAt > leaseMs;
  }
}
