import type { EpochCounts } from '@perch/contracts';
import { logSumExp } from './log-math.ts';

/** How many alternatives r_k are weighed, and how far they reach above r0. */
export const ratioCount = 24;
const leastRatio = 1.05;
const mostRatio = 30;

/** r_k / r0: `ratioCount` values from 1.05 to 30 on a log grid. */
const relativeRatios = Array.from(
  { length: ratioCount },
  (_, k) => leastRatio * (mostRatio / leastRatio) ** (k / (ratioCount - 1)),
);

const logRatios = relativeRatios.map(Math.log);

/** Counts the rollback rule takes; the epoch's number is for people. */
export type SplitCounts = Pick<EpochCounts, 'share' | 'stableEvents' | 'candidateEvents'>;

/**
 * θ(w, r): the chance that an event is the candidate's, when the candidate has the share w of the units and r times
 * stable's rate. It does not depend on the rate itself, so a drift that both arms share changes nothing.
 */
export const theta = (w: number, r: number): number => (r * w) / (r * w + 1 - w);

/**
 * ln E: the evidence that the candidate's rate of events exceeds `r0` times stable's. Each event, in its order, is a draw
 * of its arm; against θ0 = θ(w, r0) stand the θk = θ(w, r_k), and E is the mean of their likelihood ratios:
 * `E = mean_k exp(logL_k)`, `logL_k = Σ_e x_cand·ln(θk/θ0) + x_stable·ln((1−θk)/(1−θ0))`.
 * Under equal rates E is a martingale from 1: the chance that it ever reaches 1/α is at most α (Ville's inequality).
 */
export function rollbackEvidence(epochs: readonly SplitCounts[], r0: number): number {
  const sum = new EvidenceSum(r0);
  for (const epoch of epochs) sum.add(epoch.share, epoch.stableEvents, epoch.candidateEvents);
  return sum.log();
}

/** The sums logL_k of one metric, as counts come in; `rollbackEvidence` of all of them is `log()`. */
export class EvidenceSum {
  private readonly logL = new Float64Array(ratioCount);
  /** By share: ln((1−θk)/(1−θ0)) for each k; ln(θk/θ0) is the same with ln(r_k/r0) added. */
  private readonly byShare = new Map<number, Float64Array>();

  constructor(private readonly r0: number) {}

  /** Where one arm has all the traffic nothing is compared, and nothing is added. */
  add(share: number, stableEvents: number, candidateEvents: number): void {
    if (share <= 0 || share >= 1) return;
    const lessStable = this.atShare(share);
    const events = stableEvents + candidateEvents;
    for (let k = 0; k < ratioCount; k += 1) this.logL[k]! += candidateEvents * logRatios[k]! + events * lessStable[k]!;
  }

  log(): number {
    return logSumExp(this.logL) - Math.log(ratioCount);
  }

  /** No less than `log()`, for a tenth of its cost. */
  atMost(): number {
    let most = Number.NEGATIVE_INFINITY;
    for (const logL of this.logL) if (logL > most) most = logL;
    return most;
  }

  private atShare(w: number): Float64Array {
    const known = this.byShare.get(w);
    if (known) return known;
    const { r0 } = this;
    const fresh = Float64Array.from(relativeRatios, (ratio) => Math.log((r0 * w + 1 - w) / (r0 * ratio * w + 1 - w)));
    this.byShare.set(w, fresh);
    return fresh;
  }
}

/** What is known of stable before a rollout: of `n` requests of the day before, `x` had the event. */
export interface History {
  n: number;
  x: number;
}

/**
 * r0, frozen at the start: 1 where stable's rate over the day before is below 0.5 %; else 1.25, for then a quarter more
 * events is no regression. Also 1.25 without history, and always for `slow`.
 */
export function nullRatio(metric: string, history: History | null): number {
  if (metric === 'slow' || !history || history.n <= 0) return 1.25;
  return history.x / history.n < 0.005 ? 1 : 1.25;
}
