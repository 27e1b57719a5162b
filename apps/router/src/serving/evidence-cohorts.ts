import type { EvidenceTrial } from './evidence-trial.ts';

/** Length of a cohort: one report interval. */
export const cohortMs = 1_000;

/** Requests of both arms that arrived in one report interval. */
export class Cohort {
  readonly trials: EvidenceTrial[] = [];
  /** Of them those on their way. */
  open = 0;
  readonly second: number;

  constructor(second: number) {
    this.second = second;
  }
}

/** The requests of one epoch by the time of their arrival, until what became of them is settled. */
export class EvidenceCohorts {
  /** Oldest first. */
  private waiting: Cohort[] = [];
  private current: Cohort | undefined;
  /** Longest time that a request may take. */
  private timeoutMs = 0;

  get length(): number {
    return this.waiting.length;
  }

  begin(startedAt: number, timeoutMs: number): Cohort {
    if (timeoutMs > this.timeoutMs) this.timeoutMs = timeoutMs;
    const second = Math.floor(startedAt / cohortMs);
    if (this.current?.second !== second) {
      this.current = new Cohort(second);
      this.waiting.push(this.current);
    }
    return this.current;
  }

  /**
   * The cohorts that close now: their interval is over and each request ended, or is past its time. The oldest first and
   * never past one that waits, so that which requests count does not depend on how fast theirs ended. `all`: none comes any more.
   */
  close(now: number, all: boolean): Cohort[] {
    let count = 0;
    for (const { second, open } of this.waiting) {
      const endedAt = (second + 1) * cohortMs;
      const over = all || now >= endedAt;
      if (!over || (open > 0 && now < endedAt + this.timeoutMs)) break;
      count += 1;
    }
    const closed = this.waiting.splice(0, count);
    if (this.waiting.length === 0) this.current = undefined;
    return closed;
  }
}
