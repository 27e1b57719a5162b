import type { Side } from './call.ts';
import type { EvidenceTrial } from './evidence-trial.ts';

/** Length of a cohort. */
export const cohortMs = 1_000;
/**
 * Requests younger than this are not told yet: by then most have ended, and those of stable that have not count as events.
 * With `tellMs` of the report loop it makes what a kill takes away: less than a second of arrivals.
 */
export const settleMs = 250;

/** Requests of both arms that arrived in the same second. */
export class Cohort {
  readonly trials: EvidenceTrial[] = [];
  /** Of them those on their way. */
  open = 0;
  readonly second: number;

  constructor(second: number) {
    this.second = second;
  }
}

const endOf = ({ second }: Cohort): number => (second + 1) * cohortMs;

/** The requests of one epoch by the time of their arrival, until what became of them is settled. */
export class EvidenceCohorts {
  /** Oldest first. */
  private waiting: Cohort[] = [];
  private current: Cohort | undefined;
  /** Those that are not told yet, oldest first. */
  private young: EvidenceTrial[] = [];
  /** Of those that are told, how many are on their way. */
  private readonly open: Record<Side, number> = { stable: 0, candidate: 0 };
  /** Longest time that a request may take. */
  private timeoutMs = 0;

  get length(): number {
    return this.waiting.length;
  }

  /** The cohort of a request that arrives now. `timeoutMs`: the longest it may take. */
  at(startedAt: number, timeoutMs: number): Cohort {
    if (timeoutMs > this.timeoutMs) this.timeoutMs = timeoutMs;
    const second = Math.floor(startedAt / cohortMs);
    if (this.current?.second !== second) {
      this.current = new Cohort(second);
      this.waiting.push(this.current);
    }
    return this.current;
  }

  begin(trial: EvidenceTrial, cohort: Cohort): void {
    cohort.trials.push(trial);
    cohort.open += 1;
    this.young.push(trial);
  }

  settle(trial: EvidenceTrial, cohort: Cohort): void {
    cohort.open -= 1;
    if (trial.told) this.open[trial.side] -= 1;
  }

  /** Requests that are to be told from now on, by their arrival alone, whatever became of them. */
  pass(now: number, all: boolean): EvidenceTrial[] {
    const until = all ? Number.POSITIVE_INFINITY : now - settleMs;
    const stays = this.young.findIndex(({ startedAt }) => startedAt >= until);
    const passed = this.young.splice(0, stays < 0 ? this.young.length : stays);
    for (const trial of passed) {
      trial.told = true;
      if (!trial.ended) this.open[trial.side] += 1;
    }
    return passed;
  }

  /** Requests on their way, of those that are told. */
  onTheWay(): Record<Side, number> {
    return { ...this.open };
  }

  /**
   * The cohorts that close now: their interval is over and each request ended, or is past its time. The oldest first and
   * never past one that waits, so that which requests count does not depend on how fast theirs ended. `all`: none comes any more.
   */
  close(now: number, all: boolean): Cohort[] {
    let count = 0;
    for (const cohort of this.waiting) {
      const endedAt = endOf(cohort);
      const over = all || now >= endedAt + settleMs;
      if (!over || (cohort.open > 0 && now < endedAt + this.timeoutMs)) break;
      count += 1;
    }
    const closed = this.waiting.splice(0, count);
    if (this.waiting.length === 0) this.current = undefined;
    return closed;
  }
}
