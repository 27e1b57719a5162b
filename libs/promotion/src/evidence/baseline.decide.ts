import { latencyBoundsMs, type RolloutPolicy } from '@perch/contracts';
import type { MeasuredBaseline } from './evidence.entity.ts';

/** What stable did over the day before, as routers counted it. */
export interface StableDay {
  requests: number;
  errors: number;
  /** One count a bucket of `latencyBoundsMs`, plus one. */
  latency: number[];
  /** The busiest minute of the endpoint, all versions. */
  perMinute: number;
}

/** With fewer requests than this one error more or less would move the rate across half a percent. */
export const leastRequests = 200;
/** Below this rate of stable's a candidate may be no worse at all; above, chance alone makes arms differ more. */
const quietRate = 0.005;
const exact = 1;
const tolerant = 1.25;
const slowFactor = 1.5;

/** The latency that a share `q` of replies stayed below, by straight lines between the bounds; null: there was none. */
export function quantileMs(latency: readonly number[], q: number): number | null {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [at, count] of latency.entries()) {
    const upper = latencyBoundsMs[at];
    if (upper === undefined) break; // longer than the last bound: how long is not known
    const lower = latencyBoundsMs[at - 1] ?? 0;
    if (count > 0 && below + count >= q * total) return lower + ((q * total - below) / count) * (upper - lower);
    below += count;
  }
  return latencyBoundsMs.at(-1)!;
}

const words = (ms: number) => `${Math.round(ms * 10) / 10} ms`;

function slowOf(day: StableDay, policy: RolloutPolicy, sloLatencyMs: number | undefined) {
  if (policy.slow === false) return { slowMs: null, sentence: 'slow is switched off by the policy.' };
  if (policy.slowMs !== undefined)
    return { slowMs: policy.slowMs, sentence: `A reply is slow above ${words(policy.slowMs)}, as the policy says.` };
  if (sloLatencyMs !== undefined)
    return { slowMs: sloLatencyMs, sentence: `A reply is slow above ${words(sloLatencyMs)}, the endpoint's slo.` };
  const p99 = day.requests < leastRequests ? null : quantileMs(day.latency, 0.99);
  if (p99 === null) {
    const sentence = `Nobody is judged by slow: stable answered ${day.requests} requests in the day before, and its p99 wants ${leastRequests}; an slo.latencyMs would do without.`;
    return { slowMs: null, sentence };
  }
  const slowMs = Math.ceil(slowFactor * p99);
  return { slowMs, sentence: `A reply is slow above ${words(slowMs)}, 1.5 × stable's p99 of ${words(p99)}.` };
}

/** r0 by metric, the latency that is slow and the busiest minute: frozen when a rollout starts. */
export function decideBaseline(
  day: StableDay,
  policy: RolloutPolicy,
  sloLatencyMs: number | undefined,
): MeasuredBaseline {
  const errorRate = day.requests < leastRequests ? null : day.errors / day.requests;
  const error = errorRate !== null && errorRate < quietRate ? exact : tolerant;
  const { slowMs, sentence } = slowOf(day, policy, sloLatencyMs);
  const others = [...policy.flags, ...policy.provided].map(({ name }) => [name, tolerant] as const);
  const rate =
    errorRate === null
      ? `Stable answered only ${day.requests} requests in the day before, so its own error rate is not known`
      : `Stable failed ${Number((100 * errorRate).toPrecision(2))} % of ${day.requests} requests in the day before`;
  return {
    r0: { error, slow: tolerant, contract: tolerant, ...Object.fromEntries(others) },
    slowMs,
    requestsPerMinute: day.perMinute,
    errorRate,
    requests: day.requests,
    sentences: [
      `${rate}: a candidate up to ${error} times as bad still counts as equal.`,
      sentence,
      `The busiest minute of the last day had ${Math.round(day.perMinute)} requests.`,
    ],
  };
}
