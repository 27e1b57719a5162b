import type { MetricInput, MetricReading } from '@perch/contracts';
import { finiteExp } from './log-math.ts';
import { allowedGap } from './margin.decide.ts';
import { metricWeights } from './metric-weights.decide.ts';
import { promotionBounds } from './promotion-bounds.decide.ts';
import { rollbackEvidence } from './rollback-evidence.decide.ts';

/** What the ramp wants to know of a metric; the largest gaps decide. */
export type GapReading = Pick<MetricReading, 'gap' | 'margin'>;

/** `gap = upper_cand − lower_stable` of the current epoch, and the margin that it is held against. `a`: see `promotionBounds`. */
export function readGap(input: Pick<MetricInput, 'stable' | 'candidate' | 'margin'>, a: number) {
  const stable = { ...input.stable, ...promotionBounds(input.stable.x, input.stable.n, a) };
  const candidate = { ...input.candidate, ...promotionBounds(input.candidate.x, input.candidate.n, a) };
  return { stable, candidate, gap: candidate.upper - stable.lower, margin: allowedGap(input.margin, stable.lower) };
}

/** All that the rule reads of the metrics, in their order, and ln E of each. */
export function readMetrics(metrics: readonly MetricInput[], a: number): { readings: MetricReading[]; logE: number[] } {
  const weights = metricWeights(metrics.map(({ metric }) => metric));
  const logE = metrics.map(({ epochs, r0 }) => rollbackEvidence(epochs, r0));
  const readings = metrics.map((input, at) => ({
    metric: input.metric,
    ...readGap(input, a),
    e: finiteExp(logE[at]!),
    weight: weights[at]!,
  }));
  return { readings, logE };
}

/** Every metric is provably within its margin: what promotion asks. Of no metric nothing is proved. */
export const provedWithin = (readings: readonly GapReading[]): boolean =>
  readings.length > 0 && readings.every(({ gap, margin }) => gap <= margin);
