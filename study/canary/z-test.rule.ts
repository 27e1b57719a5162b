import type { Rule, TrialEnd } from '../../libs/promotion/src/statistics/simulate-rule.ts';
import type { Sample } from '../../libs/promotion/src/statistics/simulate-traffic.ts';
import { addWindow, MinuteWindows, type Window, windowOf } from './minute-windows.ts';

const minutesToPromote = 60;
/** Of p < 0.05, two-sided, as it is usually asked; only a worse candidate goes back. */
const zOf95 = 1.96;

/**
 * (c) A z-test of two proportions (pooled, as textbooks have it) on all requests so far, looked at each minute at 10 % of
 * the traffic: significantly worse goes back, an hour without that promotes.
 */
export class ZTestRule implements Rule {
  share = 0.1;
  private readonly windows = new MinuteWindows();
  private readonly sum: Window = { stable: { n: 0, x: 0 }, candidate: { n: 0, x: 0 } };
  private minutes = 0;

  look(sample: Sample, atMs: number): TrialEnd | null {
    for (const window of this.windows.take(windowOf(sample), atMs)) {
      addWindow(this.sum, window);
      this.minutes += 1;
      if (zOf(this.sum) > zOf95) return 'rolled_back';
      if (this.minutes >= minutesToPromote) return 'promoted';
    }
    return null;
  }
}

/** How many standard errors the candidate's rate lies above stable's; 0 while it cannot be said. */
export function zOf({ stable, candidate }: Window): number {
  if (stable.n === 0 || candidate.n === 0) return 0;
  const pooled = (stable.x + candidate.x) / (stable.n + candidate.n);
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / stable.n + 1 / candidate.n));
  return error > 0 ? (candidate.x / candidate.n - stable.x / stable.n) / error : 0;
}
