import { type EndpointStats, latencyBoundsMs, type VersionCount } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { latencyQuantile, ratesBetween } from './stats.decide.ts';

const latency = (...places: [place: number, count: number][]) => {
  const counts = new Array<number>(latencyBoundsMs.length + 1).fill(0);
  for (const [place, count] of places) counts[place] = count;
  return counts;
};
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const count = (change: Partial<VersionCount> = {}): VersionCount => ({
  version: 1,
  router: 'r1',
  routerName: 'one',
  bootId: 'b',
  at: at(0),
  requests: 0,
  errors: 0,
  retries: 0,
  latency: latency(),
  ...change,
});
const stats = (second: number, ...counts: VersionCount[]): EndpointStats => ({
  endpoint: 'e',
  now: at(second),
  counts,
});

describe('latencies', () => {
  it('interpolates within a bucket', () => {
    expect(latencyQuantile(latency([5, 100]), 0.5)).toBe(8.5); // 7 to 10 ms
    expect(latencyQuantile(latency([0, 90], [5, 10]), 0.99)).toBeCloseTo(9.7);
    expect(latencyQuantile(latency(), 0.5)).toBeNull();
    expect(latencyQuantile(latency([latencyBoundsMs.length, 5]), 0.99)).toBe(60_000); // longer than the last bound
  });
  it('never falls with a higher quantile', () => {
    const histogram = fc.array(fc.nat(50), { minLength: 27, maxLength: 27 });
    fc.assert(
      fc.property(
        histogram,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (counts, a, b) => {
          const low = latencyQuantile(counts, Math.min(a, b));
          const high = latencyQuantile(counts, Math.max(a, b));
          expect(low === null || low <= high!).toBe(true);
        },
      ),
    );
  });
});

describe('rates between two answers', () => {
  it('takes the difference of each router and adds them up', () => {
    const before = stats(0, count({ requests: 100, errors: 1 }), count({ router: 'r2', requests: 7 }));
    const after = stats(
      10,
      count({ at: at(10), requests: 200, errors: 11, retries: 3, latency: latency([5, 100]) }),
      count({ router: 'r2', requests: 7 }),
    );
    expect(ratesBetween(before, after)).toEqual([
      {
        version: 1,
        router: null,
        requests: 100,
        requestsPerSecond: 10,
        p50Ms: 8.5,
        p99Ms: 10,
        errors: 10,
        errorPercent: 10,
        retries: 3,
      },
    ]);
    expect(ratesBetween(before, after, true)).toMatchObject([
      { router: 'one', requests: 100 },
      { requests: 0, errorPercent: null },
    ]);
  });
  it.each<[string, VersionCount | undefined, VersionCount, number, number]>([
    ['a router that began anew counts from nothing', count({ requests: 50 }), count({ bootId: 'c', requests: 5, at: at(9) }), 5, 0.56],
    ['so does one that forgot', count({ requests: 50 }), count({ requests: 5, at: at(10) }), 5, 0.5],
    ['one that was not there before', undefined, count({ requests: 20 }), 20, 2],
    ['told 9 s apart, asked 10 s apart: measured by what was told', count({ requests: 0 }), count({ requests: 90, at: at(9) }), 90, 10],
    ['idle for an hour before: measured by the questions', count({ at: '2025-12-31T23:00:00Z' }), count({ requests: 50, at: at(9) }), 50, 5],
  ])('%s', (_what, before, after, requests, requestsPerSecond) => {
    const [rates] = ratesBetween(stats(0, ...(before ? [before] : [])), stats(10, after));
    expect(rates).toMatchObject({ requests, requestsPerSecond });
  }); // biome-ignore format: rows
  it('gives totals without a rate when there was no answer before', () => {
    expect(ratesBetween(undefined, stats(0, count({ requests: 8 })))).toMatchObject([
      { requests: 8, requestsPerSecond: 0 },
    ]);
  });
});
