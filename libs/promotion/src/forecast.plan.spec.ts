import { namedPolicies, type SimulateRollout } from '@perch/contracts';
import type { TrafficSight } from '@perch/endpoints';
import { describe, expect, it } from 'vitest';
import type { MeasuredBaseline } from './evidence/evidence.entity.ts';
import { measuredVersion, planForecast } from './forecast.plan.ts';

const policy = namedPolicies.default;
const measured: MeasuredBaseline = {
  r0: {},
  slowMs: null,
  requestsPerMinute: 120,
  errorRate: 0.004,
  requests: 50_000,
  sentences: [],
};
const wish = (given: Partial<SimulateRollout> = {}): SimulateRollout => ({ runs: 50, seed: 1, ...given });

describe('what is simulated', () => {
  it.each([
    ['measured', {}, measured, 120, 0.004, /busiest minute.*stable made them.*0\.4 % of 50000 requests/],
    ['given', { requestsPerMinute: 9, errorRate: 0 }, measured, 9, 0, /^Requests as given; errors as given\.$/],
    ['too few requests', {}, { ...measured, errorRate: null }, 120, 0.001, /assumed at 0\.1 %/],
    ['nothing serves, all given', { requestsPerMinute: 9 }, null, 9, 0.001, /^Requests as given; errors assumed/],
  ] as const)('%s', (_name, given, baseline, perMinute, rate, source) => {
    expect(planForecast('e', wish(given), policy, baseline)).toMatchObject({
      requestsPerMinute: perMinute,
      errorRate: rate,
      source: expect.stringMatching(source),
    });
  });

  it.each([
    ['nothing serves', null],
    ['nobody asks', { ...measured, requestsPerMinute: 0 }],
  ])('%s: it says what to give', (_name, baseline) =>
    expect(() => planForecast('e', wish(), policy, baseline)).toThrow(/^requestsPerMinute: endpoint e had no requests/),
  );
});

describe('the version that is measured', () => {
  const one = (digest: string, version: number, state: string) =>
    ({ digest, version, state }) as TrafficSight['deployments'][number];
  const force = { stable: 'a' } as TrafficSight['force'];
  it.each([
    ['stable', force, [one('a', 1, 'ready'), one('b', 2, 'ready')], 1],
    ['the newest ready one', { ...force, stable: null }, [one('a', 1, 'ready'), one('b', 2, 'ready'), one('c', 3, 'failed')], 2],
    ['nothing', force, [], null],
  ])('%s', (_name, given, deployments, version) => expect(measuredVersion({ force: given, deployments })).toBe(version)); // biome-ignore format: a table
});
