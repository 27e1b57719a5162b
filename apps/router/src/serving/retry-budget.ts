const slots = 10;
const slotMs = 1_000;

/** Retries that may have run twice: at most 20 % of the requests of the last 10 s, or 50, whichever is more. */
export class RetryBudget {
  private readonly requests = new Uint32Array(slots);
  private readonly retries = new Uint32Array(slots);
  private slot = 0;

  /** Called for each request; `now` in milliseconds of any steady clock. */
  countRequest(now: number): void {
    this.advance(now);
    this.requests[this.slot % slots]! += 1;
  }

  /** True when one more retry is within the budget, and counts it. */
  take(now: number): boolean {
    this.advance(now);
    const sum = (counts: Uint32Array) => counts.reduce((total, count) => total + count, 0);
    if (sum(this.retries) >= Math.max(50, 0.2 * sum(this.requests))) return false;
    this.retries[this.slot % slots]! += 1;
    return true;
  }

  private advance(now: number): void {
    const slot = Math.floor(now / slotMs);
    if (slot === this.slot) return;
    for (let cleared = Math.max(this.slot + 1, slot - slots + 1); cleared <= slot; cleared += 1) {
      this.requests[cleared % slots] = 0;
      this.retries[cleared % slots] = 0;
    }
    this.slot = slot;
  }
}
