/** How long the same thing is held back after it was done: from `leastMs`, doubled up to `mostMs` while it is asked for all the time. */
export class Coalescing {
  private readonly last = new Map<string, { at: number; gapMs: number }>();

  constructor(
    private readonly leastMs: number,
    private readonly mostMs: number,
  ) {}

  /** Milliseconds to wait before it is done once more; 0 for what was quiet for a while: a single change goes out at once. */
  waitMs(key: string, now: number): number {
    const last = this.last.get(key);
    return last ? Math.max(0, last.at + last.gapMs - now) : 0;
  }

  /** It was done, and changed something. */
  note(key: string, now: number): void {
    const last = this.last.get(key);
    const busy = last !== undefined && now - last.at < 2 * last.gapMs;
    const gapMs = busy ? Math.min(this.mostMs, last.gapMs * 2) : this.leastMs;
    this.last.set(key, { at: now, gapMs });
  }
}
