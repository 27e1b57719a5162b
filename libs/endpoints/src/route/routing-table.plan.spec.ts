import type { DeploymentState, Route } from '@perch/contracts';
import { type Entry, entryOf } from '@perch/fleet';
import { describe, expect, it } from 'vitest';
import { buildRoutingTable, type ChangedRoute, planRoutes, routeFault } from './routing-table.plan.ts';

const route = (targets: Record<string, string[]>, arms?: Route['arms']): Route => ({
  arms: arms ?? Object.keys(targets).slice(0, 1).map((deployment) => ({ deployment, share: 1 })),
  targets: Object.entries(targets).map(([deployment, servers], at) => ({
    deployment, servers, version: at + 1, tritonModel: 'm', maxBatchSize: 0, inputs: [], outputs: [],
    processing: { builtin: 'passthrough', options: {} }, files: [],
  })),
  access: 'key', timeoutMs: 1, maxBodyBytes: 1, idempotent: true,
}); // biome-ignore format: one record
const known = new Set(['s1', 's2']);
const changed = (endpoint: string, value: Route | null): ChangedRoute => ({
  endpoint,
  route: value,
  digest: value && entryOf('endpoints', endpoint, value).digest,
});
const published = (endpoint: string, value: Route | null, unmeant: string[] = []): Entry => ({
  ...entryOf('endpoints', endpoint, value),
  unmeant,
});
const states = (of: Record<string, DeploymentState>) => new Map(Object.entries(of));

describe('what may be published', () => {
  it.each<[string, Route, string | undefined]>([
    ['nothing to serve yet', route({}), undefined],
    ['one target', route({ a: ['s1'] }), undefined],
    ['a server nobody knows', route({ a: ['s9'] }), 'no known server'],
    ['no server', route({ a: [] }), 'no known server'],
    ['an arm without a target', route({ a: ['s1'] }, [{ deployment: 'b', share: 1 }]), 'arm b has no target'],
    ['shares that do not add up', route({ a: ['s1'] }, [{ deployment: 'a', share: 0.9 }]), 'add to 0.9'],
    ['targets without any arm', route({ a: ['s1'] }, []), 'add to 0'],
    [
      'shares with the error of floats',
      route(
        { a: ['s1'], b: ['s1'], c: ['s1'] },
        ['a', 'b', 'c'].map((deployment) => ({ deployment, share: 1 / 3 })),
      ),
      undefined,
    ],
  ])('%s', (_what, value, words) => {
    const fault = routeFault(value, known);
    if (words === undefined) expect(fault).toBeUndefined();
    else expect(fault).toContain(words);
  });

  it('one bad route holds back nobody else', () => {
    const plan = planRoutes(
      [changed('bad', route({ a: ['s9'] })), changed('good', route({ b: ['s1'] }))],
      [],
      states({}),
      known,
    );
    expect(plan.entries.map(({ key }) => key)).toEqual(['good']);
    expect(plan.refused).toEqual([{ endpoint: 'bad', fault: 'deployment a has no known server' }]);
  });
});

describe('what a new table adds and leaves out', () => {
  it.each<
    [
      string,
      Route | null,
      Route | null,
      Record<string, DeploymentState>,
      { unmeant: string[]; routed: string[]; unrouted: string[] },
    ]
  >([
    ['the first', null, route({ a: ['s1'] }), { a: 'ready' }, { unmeant: [], routed: ['a s1'], unrouted: [] }],
    [
      'a new version takes over',
      route({ a: ['s1'] }),
      route({ b: ['s1'] }),
      { a: 'draining', b: 'ready' },
      { unmeant: [], routed: ['b s1'], unrouted: ['a s1'] },
    ],
    [
      'a server less',
      route({ a: ['s1', 's2'] }),
      route({ a: ['s2'] }),
      { a: 'ready' },
      { unmeant: [], routed: ['a s2'], unrouted: ['a s1'] },
    ],
    [
      'the endpoint is gone',
      route({ a: ['s1'] }),
      null,
      { a: 'draining' },
      { unmeant: [], routed: [], unrouted: ['a s1'] },
    ],
    ['gone for good', route({ a: ['s1'] }), null, { a: 'retired' }, { unmeant: [], routed: [], unrouted: ['a s1'] }],
    [
      'it broke: nobody decided',
      route({ a: ['s1'] }),
      route({}),
      { a: 'failed' },
      { unmeant: ['a'], routed: [], unrouted: ['a s1'] },
    ],
    [
      'its row vanished: nobody decided',
      route({ a: ['s1'] }),
      null,
      {},
      { unmeant: ['a'], routed: [], unrouted: ['a s1'] },
    ],
  ])('%s', (_what, before, after, known_, expected) => {
    const plan = planRoutes([changed('e', after)], before ? [published('e', before)] : [], states(known_), known);
    const words = (pairs: { deployment: string; server: string }[]) =>
      pairs.map(({ deployment, server }) => `${deployment} ${server}`);
    expect({ unmeant: plan.entries[0]!.unmeant, routed: words(plan.routed), unrouted: words(plan.unrouted) }).toEqual(
      expected,
    );
  });

  it('what nobody decided stays unmeant until it is back, or decided', () => {
    const lost = published('e', route({}), ['a']);
    const still = planRoutes([changed('e', route({ b: ['s1'] }))], [lost], states({ a: 'failed', b: 'ready' }), known);
    expect(still.entries[0]!.unmeant).toEqual(['a']);
    const back = planRoutes([changed('e', route({ a: ['s1'] }))], [lost], states({ a: 'ready' }), known);
    expect(back.entries[0]!.unmeant).toEqual([]);
    const decided = planRoutes([], [lost], states({ a: 'draining' }), known);
    expect(decided.entries).toEqual([{ ...lost, unmeant: [] }]);
    expect(planRoutes([], [lost], states({ a: 'failed' }), known).entries).toEqual([]);
  });
});

it('a whole table holds the routes that may be published, the servers and the keys', () => {
  const table = buildRoutingTable({
    routes: { good: route({ a: ['s1'] }), bad: route({ a: ['s9'] }) },
    servers: [{ id: 's1', http: 'h:1', grpc: 'h:2' }],
    keys: [{ id: 'k', hash: 'a'.repeat(64), endpoints: [] }],
  });
  expect(Object.keys(table.endpoints)).toEqual(['good']);
  expect(table.servers).toEqual({ s1: { http: 'h:1', grpc: 'h:2' } });
  expect(table.keys).toEqual({ k: { hash: 'a'.repeat(64), endpoints: [] } });
});

describe('a deployment that two names reach', () => {
  const endpoint = route({ a: ['s1'], b: ['s1'] });
  const split = route({ a: ['s1'] });
  const pairs = (plan: { unrouted: { deployment: string; server: string }[] }) =>
    plan.unrouted.map(({ deployment, server }) => `${deployment} ${server}`);

  it('is neither given up nor lost by a split that leaves it', () => {
    for (const after of [null, route({ b: ['s1'] })]) {
      const before = [published('e', endpoint), published('s', split)];
      const plan = planRoutes([changed('s', after)], before, states({ a: 'ready', b: 'ready' }), known);
      expect([plan.entries[0]!.unmeant, pairs(plan)]).toEqual([[], []]);
    }
  });

  it('is given up with the last name that holds it', () => {
    const before = [published('e', endpoint), published('s', split)];
    const left = route({ b: ['s1'] });
    const both = [changed('e', left), changed('s', null)];
    const plan = planRoutes(both, before, states({ a: 'draining', b: 'ready' }), known);
    expect(pairs(plan)).toEqual(['a s1', 'a s1']);
    const later = planRoutes([changed('s', null)], [published('e', left), published('s', split)], states({ a: 'draining' }), known); // biome-ignore format: one row reads better
    expect(pairs(later)).toEqual(['a s1']);
  });

  it('stays routed while a split that could not be published again still holds it', () => {
    const before = [published('e', endpoint), published('s', split)];
    const both = [changed('e', route({ b: ['s1'] })), changed('s', route({ c: ['s9'] }))];
    const plan = planRoutes(both, before, states({ a: 'draining', b: 'ready' }), known);
    expect(plan.refused.map((one) => one.endpoint)).toEqual(['s']);
    expect(pairs(plan)).toEqual([]);
  });

  it('follows its servers: one that it left is given up once no name lists it', () => {
    const two = [published('e', route({ a: ['s1', 's2'] })), published('s', route({ a: ['s1', 's2'] }))];
    const one = planRoutes([changed('e', route({ a: ['s1'] }))], two, states({ a: 'ready' }), known);
    expect(pairs(one)).toEqual([]);
    const both = planRoutes([changed('e', route({ a: ['s1'] })), changed('s', route({ a: ['s1'] }))], two, states({ a: 'ready' }), known); // biome-ignore format: one row reads better
    expect(new Set(pairs(both))).toEqual(new Set(['a s2']));
  });
});
