const slots = 10;
const slotMs = 1_000;

const least = 50;

function sum(counts: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < slots; i += 1) total += counts[i]!;
  return total;
}

/** What may be sent twice: at most a share of the requests of the last 10 s (20 % for retries), or 50, whichever is more. */
export class RetryBudget {
  readonly share: number;
  private readonly requests = new Uint32Array(slots);
  private readonly retries = new Uint32Array(slots);
  private slot = 0;

  constructor(share = 0.2) {
    this.share = share;
  }

  /** Called for each request; `now` in milliseconds of any steady clock. */
  countRequest(now: number): void {
    this.advance(now);
    this.requests[this.slot % slots]! += 1;
  }

  /** Whether one more is within the budget. */
  hasRoom(now: number): boolean {
    this.advance(now);
    return sum(this.retries) < Math.max(least, this.share * sum(this.requests));
  }

  /** True when one more is within the budget, and counts it. */
  take(now: number): boolean {
    if (!this.hasRoom(now)) return false;
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
