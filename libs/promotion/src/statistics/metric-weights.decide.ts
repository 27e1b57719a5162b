import { finiteExp, logSumExp } from './log-math.ts';

type Group = 'error' | 'request' | 'flag';

/** `error` alone, what else each reply shows, and what only the user's own code or figures know. */
const groupOf = (metric: string): Group => {
  if (metric === 'error') return 'error';
  return metric === 'slow' || metric === 'contract' ? 'request' : 'flag';
};

const groupWeights: Record<Group, number> = { error: 1 / 2, request: 1 / 4, flag: 1 / 4 };

/**
 * Weights of the metrics in the mean of their E, in their order; they add up to 1. `error` has ½, `slow` and `contract`
 * ¼ together, flags and provided metrics ¼ together. A group without a metric gives its part to `error`, and without
 * `error` to the others as they stand.
 */
export function metricWeights(metrics: readonly string[]): number[] {
  const members = (group: Group) => metrics.filter((metric) => groupOf(metric) === group).length;
  const present = (Object.keys(groupWeights) as Group[]).filter((group) => members(group) > 0);
  const given = present.reduce((sum, group) => sum + groupWeights[group], 0);
  const part = (group: Group) => {
    if (!present.includes('error')) return groupWeights[group] / given;
    return group === 'error' ? groupWeights.error + 1 - given : groupWeights[group];
  };
  return metrics.map((metric) => part(groupOf(metric)) / members(groupOf(metric)));
}

/** The weighted mean of several E, from their logarithms; a mean of such martingales is one, so its threshold is 1/α too. */
export const weightedEvidence = (logE: readonly number[], weights: readonly number[]): number =>
  logE.length === 0 ? 1 : finiteExp(logSumExp(logE.map((value, at) => value + Math.log(weights[at]!))));
