import type { Side } from './call.ts';
import type { EvidenceTrial } from './evidence-trial.ts';

/** Length of a cohort: one report interval. */
export const cohortMs = 1_000;

/** Requests of both arms that arrived in one report interval. */
export class Cohort {
  readonly trials: EvidenceTrial[] = [];
  /** Of them those on their way, by arm. */
  readonly open: Record<Side, number> = { stable: 0, candidate: 0 };
  /** Its interval was over when it was last looked at. */
  over = false;
  readonly second: number;

  constructor(second: number) {
    this.second = second;
  }

  get waits(): boolean {
    return this.open.stable + this.open.candidate > 0;
  }
}

const endOf = ({ second }: Cohort): number => (second + 1) * cohortMs;

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

  /** The cohorts whose interval has come to its end since it was asked last, whatever became of their requests. */
  pass(now: number, all: boolean): Cohort[] {
    const passed = this.waiting.filter((cohort) => !cohort.over && (all || now >= endOf(cohort)));
    for (const cohort of passed) cohort.over = true;
    return passed;
  }

  /** Requests on their way, of the intervals that are over. */
  open(): Record<Side, number> {
    const sum = { stable: 0, candidate: 0 };
    for (const { over, open } of this.waiting) {
      if (!over) continue;
      sum.stable += open.stable;
      sum.candidate += open.candidate;
    }
    return sum;
  }

  /**
   * The cohorts that close now: their interval is over and each request ended, or is past its time. The oldest first and
   * never past one that waits, so that which requests count does not depend on how fast theirs ended. `all`: none comes any more.
   */
  close(now: number, all: boolean): Cohort[] {
    let count = 0;
    for (const cohort of this.waiting) {
      const endedAt = endOf(cohort);
      const over = all || now >= endedAt;
      if (!over || (cohort.waits && now < endedAt + this.timeoutMs)) break;
      count += 1;
    }
    const closed = this.waiting.splice(0, count);
    if (this.waiting.length === 0) this.current = undefined;
    return closed;
  }
}
