import type { Rule, TrialEnd } from '../../libs/promotion/src/statistics/simulate-rule.ts';
import type { Sample } from '../../libs/promotion/src/statistics/simulate-traffic.ts';
import { MinuteWindows, windowOf } from './minute-windows.ts';

const leastSuccess = 0.99;
const mostFailedChecks = 5;
const stepShare = 0.1;
const mostShare = 0.5;

/**
 * (a) A fixed success rate, checked each minute: as documented for Flagger (`interval: 1m`, `threshold: 5`, `stepWeight: 10`,
 * `maxWeight: 50`, request-success-rate ≥ 99 %). A minute in which the candidate had no request yields no value, and that is
 * a failed check. After 5 failed checks in all it goes back; each good one is a step up, and the one at 50 % promotes.
 */
export class ThresholdRule implements Rule {
  share = stepShare;
  private failedChecks = 0;
  private readonly windows = new MinuteWindows();

  look(sample: Sample, atMs: number): TrialEnd | null {
    for (const { candidate } of this.windows.take(windowOf(sample), atMs)) {
      const end = this.check(candidate);
      if (end) return end;
    }
    return null;
  }

  private check({ n, x }: { n: number; x: number }): TrialEnd | null {
    if (n === 0 || 1 - x / n < leastSuccess) {
      this.failedChecks += 1;
      return this.failedChecks >= mostFailedChecks ? 'rolled_back' : null;
    }
    if (this.share >= mostShare) return 'promoted';
    this.share = Math.min(mostShare, this.share + stepShare);
    return null;
  }
}
