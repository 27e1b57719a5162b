import { type EndpointStats, latencyBoundsMs, type VersionCount } from '@perch/contracts';

/** What one version did over a stretch of time, added up over routers (or of one router). */
export interface VersionRates {
  version: number;
  /** Name of the one router; null: all of them. */
  router: string | null;
  requests: number;
  requestsPerSecond: number;
  /** Null: nothing was counted. */
  p50Ms: number | null;
  p99Ms: number | null;
  errors: number;
  errorPercent: number | null;
  retries: number;
}

interface Sum {
  requests: number;
  errors: number;
  retries: number;
  perSecond: number;
  latency: number[];
}

/** The latency that the share `q` of requests stayed below, interpolated within its bucket; the last one has no upper end. */
export function latencyQuantile(latency: readonly number[], q: number): number | null {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (let place = 0; place < latency.length; place += 1) {
    const count = latency[place]!;
    if (count > 0 && below + count >= q * total) {
      const lower = place === 0 ? 0 : latencyBoundsMs[place - 1]!;
      const upper = latencyBoundsMs[place] ?? lower;
      return lower + ((q * total - below) / count) * (upper - lower);
    }
    below += count;
  }
  return null;
}

const sourceOf = ({ router, version }: VersionCount) => `${router} ${version}`;

/** A router that began anew, or forgot what it counted, began at nothing. */
function difference(before: VersionCount | undefined, after: VersionCount): Omit<Sum, 'perSecond'> {
  const same = before && before.bootId === after.bootId && before.requests <= after.requests;
  const minus = (now: number, then: number | undefined) => Math.max(0, now - (same ? (then ?? 0) : 0));
  return {
    requests: minus(after.requests, before?.requests),
    errors: minus(after.errors, before?.errors),
    retries: minus(after.retries, before?.retries),
    latency: after.latency.map((count, place) => minus(count, before?.latency[place])),
  };
}

/** Routers tell their counts every two seconds: the stretch between two tellings, where that is the fairer measure. */
function seconds(before: VersionCount | undefined, after: VersionCount, intervalMs: number): number {
  const told = before ? Date.parse(after.at) - Date.parse(before.at) : 0;
  return (told > 0 && Math.abs(told - intervalMs) <= 2_500 ? told : intervalMs) / 1_000;
}

/** Rates between two answers; `before` undefined: totals since each router began, without a rate. */
export function ratesBetween(
  before: EndpointStats | undefined,
  after: EndpointStats,
  byRouter = false,
): VersionRates[] {
  const earlier = new Map(before?.counts.map((count) => [sourceOf(count), count]));
  const intervalMs = before ? Math.max(1, Date.parse(after.now) - Date.parse(before.now)) : 0;
  const sums = new Map<string, Sum & { version: number; router: string | null }>();
  for (const count of after.counts) {
    const key = byRouter ? sourceOf(count) : String(count.version);
    const sum = sums.get(key) ?? { ...emptySum(count), router: byRouter ? count.routerName : null };
    const then = earlier.get(sourceOf(count));
    const delta = difference(then, count);
    sum.requests += delta.requests;
    sum.errors += delta.errors;
    sum.retries += delta.retries;
    sum.perSecond += before ? delta.requests / seconds(then, count, intervalMs) : 0;
    sum.latency = sum.latency.map((one, place) => one + (delta.latency[place] ?? 0));
    sums.set(key, sum);
  }
  return [...sums.values()].map(({ version, router, requests, errors, retries, perSecond, latency }) => ({
    version,
    router,
    requests,
    requestsPerSecond: Math.round(perSecond * 100) / 100,
    p50Ms: rounded(latencyQuantile(latency, 0.5)),
    p99Ms: rounded(latencyQuantile(latency, 0.99)),
    errors,
    errorPercent: requests === 0 ? null : Math.round((errors / requests) * 10_000) / 100,
    retries,
  }));
}

const emptySum = ({ version }: VersionCount) => ({
  version,
  requests: 0,
  errors: 0,
  retries: 0,
  perSecond: 0,
  latency: new Array<number>(latencyBoundsMs.length + 1).fill(0),
});

const rounded = (value: number | null) => (value === null ? null : Math.round(value * 10) / 10);
