import type { Sample } from '../../libs/promotion/src/statistics/simulate-traffic.ts';

/** Requests and errors of both arms in a stretch of time. */
export interface Window {
  stable: { n: number; x: number };
  candidate: { n: number; x: number };
}

const minuteMs = 60_000;
const empty = (): Window => ({ stable: { n: 0, x: 0 }, candidate: { n: 0, x: 0 } });

/** `error` is the first metric of a sample, and the only one that the other rules look at. */
export const windowOf = ({ stable, candidate }: Sample): Window => ({
  stable: { n: stable.n, x: stable.x[0]! },
  candidate: { n: candidate.n, x: candidate.x[0]! },
});

export function addWindow(sum: Window, { stable, candidate }: Window): void {
  sum.stable.n += stable.n;
  sum.stable.x += stable.x;
  sum.candidate.n += candidate.n;
  sum.candidate.x += candidate.x;
}

/** Gathers samples into whole minutes. */
export class MinuteWindows {
  private open = empty();
  private minute = 0;

  /** The minutes that are over at `atMs`. A sample belongs to the minute in which it was reported. */
  take(window: Window, atMs: number): Window[] {
    addWindow(this.open, window);
    const over: Window[] = [];
    while (this.minute < Math.floor(atMs / minuteMs)) {
      over.push(this.open);
      this.open = empty();
      this.minute += 1;
    }
    return over;
  }
}
