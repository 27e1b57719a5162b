/** Cumulative counts of one version of an endpoint, as one boot of one router told them. */
export interface Cumulative {
  router: string;
  endpoint: string;
  version: number;
  bootId: string;
  requests: number;
  errors: number;
  latency: number[];
}

/** Such counts with what was noted of them at the last look; null: nothing yet. */
export interface CountSight extends Cumulative {
  mark: Pick<Cumulative, 'bootId' | 'requests' | 'errors' | 'latency'> | null;
}

export interface Grown {
  endpoint: string;
  version: number;
  requests: number;
  errors: number;
  latency: number[];
}

export interface HistoryPlan {
  marks: Cumulative[];
  hours: Grown[];
  /** Requests a minute of an endpoint since the last look. */
  peaks: { endpoint: string; perMinute: number }[];
}

/** After less than this a rate says more about chance than about traffic. */
const leastSpanMs = 20_000;

/** What came in since the mark. A router that began anew counts from 0, so all it says is new. */
export function grownSince({ mark, ...counts }: CountSight): Grown {
  const { endpoint, version } = counts;
  const same = mark !== null && mark.bootId === counts.bootId && mark.requests <= counts.requests;
  const less = (now: number, before: number | undefined) => Math.max(0, now - (same ? (before ?? 0) : 0));
  return {
    endpoint,
    version,
    requests: less(counts.requests, mark?.requests),
    errors: less(counts.errors, mark?.errors),
    latency: counts.latency.map((count, at) => less(count, mark?.latency[at])),
  };
}

const addUp = (one: number[], other: readonly number[]) =>
  Array.from({ length: Math.max(one.length, other.length) }, (_, at) => (one[at] ?? 0) + (other[at] ?? 0));

export function sumUp(counts: readonly Grown[]): Grown[] {
  const sums = new Map<string, Grown>();
  for (const one of counts) {
    const key = `${one.endpoint} ${one.version}`;
    const sum = sums.get(key);
    sums.set(
      key,
      sum
        ? {
            ...sum,
            requests: sum.requests + one.requests,
            errors: sum.errors + one.errors,
            latency: addUp(sum.latency, one.latency),
          }
        : one,
    );
  }
  return [...sums.values()];
}

/**
 * What is noted at a look. `spans`: since when each endpoint is watched; one that is not in it is watched from now on,
 * because when its counts came in is not known.
 */
export function planHistory(sights: readonly CountSight[], spans: ReadonlyMap<string, number>): HistoryPlan {
  const watched = sights.filter(({ endpoint }) => spans.has(endpoint));
  const hours = sumUp(watched.map(grownSince)).filter(({ requests }) => requests > 0);
  const totals = new Map<string, number>();
  for (const { endpoint, requests } of hours) totals.set(endpoint, (totals.get(endpoint) ?? 0) + requests);
  const peaks = [...totals].flatMap(([endpoint, requests]) => {
    const spanMs = spans.get(endpoint)!;
    return spanMs < leastSpanMs ? [] : [{ endpoint, perMinute: (requests * 60_000) / spanMs }];
  });
  return { marks: sights.map(({ mark: _, ...counts }) => counts), hours, peaks };
}
