import type { Rule, TrialEnd } from '../../libs/promotion/src/statistics/simulate-rule.ts';
import type { Sample } from '../../libs/promotion/src/statistics/simulate-traffic.ts';
import { MinuteWindows, type Window, windowOf } from './minute-windows.ts';

const minutesOfHour = 60;
const hours = 3;
/** Of the 98 % confidence level. */
const zOf98 = 2.3263;
/** The shift must exceed a quarter of the estimated one to count as an effect. */
const tolerance = 0.25;

/**
 * (b) An hourly score by a Mann–Whitney test on per-minute error rates: as Kayenta's judge is described (98 % confidence for
 * the shift between canary and baseline, an effect below a quarter of it tolerated, the metric `High` or `Pass`; one metric,
 * so the score is 0 or 100 against thresholds of 75 and 95). Judged after 1, 2 and 3 hours on all minutes so far, at 10 % of
 * the traffic; a low score goes back at once, the third good one promotes. Minutes without requests have no value; without
 * values in either arm there is no score, and the canary fails.
 */
export class MannWhitneyRule implements Rule {
  share = 0.1;
  private readonly windows = new MinuteWindows();
  private readonly stable: number[] = [];
  private readonly candidate: number[] = [];
  private minutes = 0;

  look(sample: Sample, atMs: number): TrialEnd | null {
    for (const window of this.windows.take(windowOf(sample), atMs)) {
      this.keep(window);
      this.minutes += 1;
      if (this.minutes % minutesOfHour !== 0) continue;
      if (this.isHigh()) return 'rolled_back';
      if (this.minutes >= hours * minutesOfHour) return 'promoted';
    }
    return null;
  }

  private keep({ stable, candidate }: Window): void {
    if (stable.n > 0) this.stable.push(stable.x / stable.n);
    if (candidate.n > 0) this.candidate.push(candidate.x / candidate.n);
  }

  private isHigh(): boolean {
    if (this.stable.length === 0 || this.candidate.length === 0) return true;
    const { lower, estimate } = shiftOf(this.candidate, this.stable);
    return lower > tolerance * Math.abs(estimate);
  }
}

/** Hodges–Lehmann: the median of all differences, and the lower end of the interval that the U statistic gives for it. */
export function shiftOf(one: readonly number[], other: readonly number[]): { lower: number; estimate: number } {
  const differences = Float64Array.from(one.flatMap((x) => other.map((y) => x - y))).sort();
  const pairs = differences.length;
  const spread = Math.sqrt((pairs * (one.length + other.length + 1)) / 12);
  const rank = Math.max(0, Math.floor(pairs / 2 - zOf98 * spread));
  return { lower: differences[rank]!, estimate: differences[Math.floor(pairs / 2)]! };
}
