/** Weight of the newest: one slow answer among many moves the figures little. */
const weight = 1 / 32;
const deviations = 4;

/**
 * How long something usually takes: mean and mean deviation, the newest weighing most, as TCP estimates when an answer
 * is overdue (RFC 6298, with smaller weights).
 */
export class UsualTime {
  private meanMs = 0;
  private deviationMs = 0;
  private known = false;

  add(ms: number): void {
    if (!this.known) {
      this.known = true;
      this.meanMs = ms;
      this.deviationMs = ms / 2;
      return;
    }
    this.deviationMs += (Math.abs(ms - this.meanMs) - this.deviationMs) * weight;
    this.meanMs += (ms - this.meanMs) * weight;
  }

  /** What nearly all take at most: mean and four deviations; 0 before the first. */
  get mostMs(): number {
    return this.meanMs + deviations * this.deviationMs;
  }
}
