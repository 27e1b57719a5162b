import { type Route, type RouteTarget, route as routeSchema, type SplitSpecInput } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { routeFault } from '../route/routing-table.plan.ts';
import { parseSplit } from './split.plan.ts';
import { compileSplit, type MemberRoutes } from './split-route.plan.ts';
import { newestAddressFirst, placeOf } from './split-target.plan.ts';

const target = (endpoint: string, version: number, more: Partial<RouteTarget> = {}): RouteTarget => ({
  deployment: `${endpoint}@${version}`,
  version,
  tritonModel: 'm',
  servers: ['s1'],
  maxBatchSize: 0,
  inputs: [],
  outputs: [],
  processing: { builtin: 'passthrough', options: {} },
  files: [],
  ...more,
});

/** Versions and their shares, `{ 3: 1, 2: 0 }`. */
function member(endpoint: string, shares: Record<number, number>, more: Partial<Route> = {}): [string, Route] {
  const versions = Object.keys(shares).map(Number).sort((a, b) => b - a); // biome-ignore format: one row reads better
  const arms = versions.map((version) => ({ deployment: `${endpoint}@${version}`, share: shares[version]! }));
  const targets = versions.map((version) => target(endpoint, version));
  const limits = { access: 'key' as const, timeoutMs: 1_000, maxBodyBytes: 100, idempotent: true };
  return [endpoint, { arms: arms.filter(({ share }) => share > 0), targets, ...limits, ...more }];
}

const fixed = (targets: string[], weights: number[], more = {}): SplitSpecInput => ({ name: 's', targets, weights, ...more }); // biome-ignore format: one row reads better
const below = (targetPrefix: string, ...newestFirst: number[]): SplitSpecInput => ({
  name: 's',
  targetPrefix,
  newestFirst,
});
const shares = (spec: SplitSpecInput, ...members: [string, Route | null][]) =>
  compileSplit(parseSplit(spec), new Map(members)).route.arms.map(
    ({ deployment, share }) => `${deployment} ${Math.round(share * 1e6) / 1e6}`,
  );

describe('compileSplit', () => {
  const a = member('t/a', { 3: 1, 2: 0, 1: 0 });
  const b = member('t/b', { 5: 0.75, 4: 0.25 });
  it.each<[string, SplitSpecInput, [string, Route | null][], string[]]>([
    ['endpoints as a whole', fixed(['t/a', 't/b'], [90, 10]), [a, b], ['t/a@3 0.9', 't/b@5 0.075', 't/b@4 0.025']],
    ['versions', fixed(['t/a/1', 't/a/2'], [1, 3]), [a], ['t/a@1 0.25', 't/a@2 0.75']],
    ['what is named twice has both shares', fixed(['t/a', 't/a/3', 't/a/1'], [1, 1, 2]), [a], ['t/a@3 0.5', 't/a@1 0.5']],
    ['a missing version leaves its share to the heaviest', fixed(['t/a/9', 't/a/2', 't/a/1'], [50, 30, 20]), [a], ['t/a@2 0.8', 't/a@1 0.2']],
    ['a missing endpoint', fixed(['t/c', 't/a'], [1, 1]), [a], ['t/a@3 1']],
    ['an endpoint without a route yet', fixed(['t/c', 't/a'], [1, 1]), [['t/c', null], a], ['t/a@3 1']],
    ['the endpoint of that name before a version of the one above', fixed(['t/a/2'], [1]), [a, member('t/a/2', { 8: 1 })], ['t/a/2@8 1']],
    ['nothing can serve', fixed(['t/c'], [1]), [], []],
    ['weight zero is reached by pinning alone', fixed(['t/a/1', 't/a/2'], [1, 0]), [a], ['t/a@1 1']],
    ['unless nothing else can serve', fixed(['t/a/9', 't/a/2'], [1, 0]), [a], ['t/a@2 1']],
    ['below a prefix the newest first', below('t/a', 0.1, 0.9), [a], ['t/a@3 0.1', 't/a@2 0.9']],
    ['whole segments alone', below('t', 1, 1), [member('t', { 1: 1 }), member('tt', { 9: 1 })], ['t@1 1']],
    ['a slash at the end says the same', below('t/', 1, 1), [member('t/x', { 1: 1 })], ['t/x@1 1']],
    ['fewer versions than weights: the rest to the heaviest', below('t', 0.2, 0.5, 0.3), [member('t/a', { 2: 1, 1: 0 })], ['t/a@2 0.2', 't/a@1 0.8']],
    ['across endpoints by name from the end of the alphabet', below('t', 0.1, 0.2, 0.7), [a, b], ['t/b@5 0.1', 't/b@4 0.2', 't/a@3 0.7']],
    ['endpoints that are numbered as versions', below('t', 0.1, 0.9), [member('t/9', { 1: 1 }), member('t/10', { 1: 1 }), member('t/2', { 7: 1 })], ['t/10@1 0.1', 't/9@1 0.9']],
    ['nothing below a prefix', below('u', 1), [a], []],
  ])('%s', (_name, spec, members, expected) => expect(shares(spec, ...members)).toEqual(expected)); // biome-ignore format: a table

  it('sends nothing to a candidate on trial, unless that version is named', () => {
    const trial = { id: 'r', epoch: 1, stable: 't/a@1', candidate: 't/a@2', salt: 'x', leaseMs: 1, slowMs: null, slowGraceMs: 0, metrics: [], fallback: null, shadow: null, feedbackKey: null }; // biome-ignore format: one record
    const route = member('t/a', { 2: 0.25, 1: 0.75 }, { rollout: trial });
    expect(shares(fixed(['t/a'], [1]), route)).toEqual(['t/a@1 1']);
    expect(shares(below('t/a', 0.5, 0.5), route)).toEqual(['t/a@1 1']);
    expect(shares(fixed(['t/a/2', 't/a'], [1, 3]), route)).toEqual(['t/a@2 0.25', 't/a@1 0.75']);
  });

  it('passes over versions that are loaded for another split, below a prefix', () => {
    const [name, route] = member('t/a', { 2: 1 });
    const members: [string, Route] = [
      name,
      { ...route, targets: [target('t/a', 9, { named: true }), ...route.targets] },
    ];
    expect(shares(below('t/a', 1, 1), members)).toEqual(['t/a@2 1']);
    expect(shares(fixed(['t/a/9'], [1]), members)).toEqual(['t/a@9 1']);
    expect(compileSplit(parseSplit(fixed(['t/a/9'], [1])), new Map([members])).route.targets[0]).not.toHaveProperty('named'); // biome-ignore format: one row reads better
  });

  it('has limits that hold for whoever answers, its own access, and its own name as salt', () => {
    const slow = member('t/b', { 1: 1 }, { timeoutMs: 9_000, maxBodyBytes: 50, idempotent: false, access: 'public' });
    const spec = fixed(['t/a', 't/b'], [1, 1], { sticky: { header: 'x-user' } });
    expect(compileSplit(parseSplit(spec), new Map([a, slow])).route).toMatchObject({
      timeoutMs: 9_000,
      maxBodyBytes: 50,
      idempotent: false,
      access: 'key',
      sticky: { header: 'x-user', salt: 's' },
    });
    const stopped = member('t/c', {}, { stopped: true });
    expect(compileSplit(parseSplit(fixed(['t/c'], [1])), new Map([stopped])).route.stopped).toBe(true);
    expect(compileSplit(parseSplit(fixed(['t/c', 't/a'], [1, 1])), new Map([stopped, a])).route).not.toHaveProperty('stopped'); // biome-ignore format: one row reads better
  });

  it('always makes a route that may be published, of targets that its endpoints have', () => {
    const names = ['t', 't/a', 't/b', 't/a/2', 'u'];
    const arbitraryMember = fc.tuple(fc.constantFrom(...names), fc.uniqueArray(fc.integer({ min: 1, max: 5 }), { maxLength: 4 })).map(([name, versions]) => member(name, Object.fromEntries(versions.map((version) => [version, 1 / versions.length])))); // biome-ignore format: one row reads better
    const weight = fc.double({ min: 0, max: 1e6, noNaN: true });
    const names2 = fc.uniqueArray(fc.constantFrom(...names, 't/a/1', 't/b/5', 'u/3', 'no'), { minLength: 1 });
    const spec = fc.oneof(
      names2.chain((targets) => fc.record({ targets: fc.constant(targets), weights: fc.array(weight, { minLength: targets.length, maxLength: targets.length }) })), // biome-ignore format: one row reads better
      fc.record({ targetPrefix: fc.constantFrom(...names), newestFirst: fc.array(weight, { minLength: 1, maxLength: 6 }) }), // biome-ignore format: one row reads better
    );
    fc.assert(
      fc.property(spec, fc.array(arbitraryMember), (given, list) => {
        const weights = 'weights' in given ? given.weights : given.newestFirst;
        fc.pre(weights.some((one) => one > 0));
        const members: MemberRoutes = new Map(list);
        const { route } = compileSplit(parseSplit({ name: 's', ...given }), members);
        expect(routeFault(route, new Set(['s1']))).toBeUndefined();
        expect(routeSchema.safeParse(route).success).toBe(true);
        for (const one of route.targets) {
          const { endpoint, ...rest } = one;
          expect(members.get(endpoint!)!.targets).toContainEqual(rest);
        }
      }),
    );
  });
});

describe('addresses', () => {
  it('are ordered newest first: numbers by value, words from the end of the alphabet, words before numbers', () => {
    const sorted = ['a/10', 'a/x/1', 'a/9', 'b/2', 'a/9/4', 'a/2', 'b/2/1'].sort(newestAddressFirst);
    expect(sorted).toEqual(['b/2/1', 'b/2', 'a/x/1', 'a/10', 'a/9/4', 'a/9', 'a/2']);
  });
  it('are found as a request would find them', () => {
    const exists = (name: string) => ['a', 'a/7', 'b/c'].includes(name);
    expect(placeOf('a/7', exists)).toEqual({ endpoint: 'a/7', version: null });
    expect(placeOf('a/8', exists)).toEqual({ endpoint: 'a', version: 8 });
    expect(placeOf('b/c', exists)).toEqual({ endpoint: 'b/c', version: null });
    for (const none of ['b', 'b/c/x', 'c/1', 'a/08', 'a/0']) expect(placeOf(none, exists)).toBeUndefined();
  });
});
