import type { Margin, RolloutPolicy } from '@perch/contracts';

/** Half a point, or a fifth of stable's rate. */
const usualMargin: Margin = { absolute: 0.005, relative: 0.2 };
/** Latency has its tail in every system: two points, or two fifths of stable's rate. */
const slowMargin: Margin = { absolute: 0.02, relative: 0.4 };

/** The margin of a metric for which the policy names none. */
export const marginOf = (metric: string): Margin => (metric === 'slow' ? slowMargin : usualMargin);

/** How much worse a candidate may be, in points: the larger of both parts. `lowerStable`: the bound below stable's rate. */
export const allowedGap = ({ absolute, relative }: Margin, lowerStable: number): number =>
  Math.max(absolute, relative * lowerStable);

/** The margin of a metric: as the policy names it, else as `margin: auto` found it, else the usual one. */
export function marginFor(policy: RolloutPolicy, metric: string, auto?: Margin | null): Margin {
  const guarded = metric === 'error' || metric === 'slow' || metric === 'contract' ? policy[metric] : undefined;
  const named = [...policy.flags, ...policy.provided].find(({ name }) => name === metric);
  return (guarded || undefined)?.margin ?? named?.margin ?? auto ?? marginOf(metric);
}
