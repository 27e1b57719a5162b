import type { MetricInput, MetricReading } from '@perch/contracts';

/** A figure of any size in few characters. */
export const figure = (value: number): string => {
  if (value >= 1e6 || (value !== 0 && value < 0.001)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
};

export const percent = (share: number): string => `${Number((share * 100).toPrecision(3))} %`;
const points = (share: number): string => `${Number((share * 100).toPrecision(2))} points`;

export function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

export const tallySentence = ({ metric, candidate, stable }: MetricReading): string =>
  `In this epoch ${metric} happened ${candidate.x} times in ${candidate.n} for the candidate and ${stable.x} times in ${stable.n} for stable.`;

/** How the events that the rollback rule took fell on the arms, in all epochs. */
export function splitSentence({ metric, epochs }: Pick<MetricInput, 'metric' | 'epochs'>): string {
  const sum = (name: 'stableEvents' | 'candidateEvents' | 'stableOpen') =>
    epochs.reduce((all, epoch) => all + (epoch[name] ?? 0), 0);
  const open = sum('stableOpen');
  const taken = open > 0 ? `, with ${open} of its requests that are still on their way counted as events` : '';
  return `Of the events of ${metric} ${sum('candidateEvents')} fell on the candidate and ${sum('stableEvents')} on stable${taken}.`;
}

export const gapSentence = ({ metric, candidate, stable, gap, margin }: MetricReading): string =>
  `${metric}: the candidate is at most ${percent(candidate.upper)} (${candidate.x} of ${candidate.n}), stable at least ${percent(stable.lower)} (${stable.x} of ${stable.n}): up to ${points(gap)} worse, allowed are ${points(margin)}.`;

/** The metric that is farthest from its margin. */
export const widestGap = (readings: readonly MetricReading[]): MetricReading | undefined =>
  [...readings].sort((one, other) => other.gap - other.margin - (one.gap - one.margin))[0];
