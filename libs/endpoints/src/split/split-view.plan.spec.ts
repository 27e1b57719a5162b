import type { Route } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseSplit } from './split.plan.ts';
import { type SplitStanding, splitEffect, viewSplit } from './split-view.plan.ts';

const route = (versions: number[], more: Partial<Route> = {}): Route => ({
  arms: versions.slice(0, 1).map((version) => ({ deployment: `d${version}`, share: 1 })),
  targets: versions.map((version) => ({
    deployment: `d${version}`, version, tritonModel: 'm', servers: ['s1'], maxBatchSize: 0, inputs: [], outputs: [],
    processing: { builtin: 'passthrough', options: {} }, files: [],
  })),
  access: 'key', timeoutMs: 1, maxBodyBytes: 1, idempotent: true, ...more,
}); // biome-ignore format: one record
const stands = (version: number, state: SplitStanding['state'], reason: string | null = null) => ({ endpoint: 'a', version, state, reason }); // biome-ignore format: one row reads better
const view = (spec: object, routes: Record<string, Route | null>, standings: SplitStanding[] = [], own = false) => {
  const row = { name: 's', generation: 1, updated_at: new Date(0), updated_by: 'olga' };
  return viewSplit({ ...row, spec: parseSplit({ name: 's', ...spec }) }, new Map(Object.entries(routes)), standings, own); // biome-ignore format: one row reads better
};

describe('what people see of a split', () => {
  const two = { targets: ['a/2', 'a/1'], weights: [10, 90] };
  it.each<[SplitStanding[], Partial<Route>, string]>([
    [[stands(2, 'loading', 'server s1: pulling')], {}, 'version 2 is loading: server s1: pulling'],
    [[stands(2, 'failed', 'no memory')], {}, 'version 2 failed: no memory'],
    [[stands(2, 'ready')], {}, 'version 2 is on its way into the routing table'],
    [[], {}, 'version 2 is not deployed'],
    [[], { stopped: true }, 'endpoint a is stopped'],
  ])('%j is missing', (standings, more, missing) => {
    const shown = view(two, { a: route([1], more) }, standings);
    expect(shown.arms).toEqual([
      { target: 'a/2', endpoint: 'a', version: 2, weightPercent: 0, missing },
      { target: 'a/1', endpoint: 'a', version: 1, weightPercent: 100, missing: null },
    ]);
    expect(shown.message).toBe('100 % to a/1; a/2 is missing, so its 10 % go to a/1');
  });

  it.each<[object, Record<string, Route | null>, string]>([
    [two, { a: null }, 'nothing is served: no target can serve'],
    [{ targetPrefix: 'x/', newestFirst: [1] }, {}, 'nothing is served below x/: no endpoint lies there yet'],
    [{ targetPrefix: 'a', newestFirst: [1] }, { a: route([]) }, 'nothing is served below a/: no version of them serves'],
    [{ targetPrefix: 'a', newestFirst: [0.1, 0.2, 0.7] }, { a: route([2, 1]) }, '10 % to a/2, 90 % to a/1; 3 weights and 2 versions below a/: what is left over goes to a/1'],
  ])('%j says %j', (spec, routes, message) => expect(view(spec, routes).message).toBe(message)); // biome-ignore format: rows

  it('tells what follows from a change', () => {
    const members = new Map([['a', route([2, 1])]]);
    const before = parseSplit({ name: 's', targets: ['a/1'], weights: [1] });
    const after = parseSplit({ name: 's', ...two, targets: ['a/2', 'a'], access: { inference: 'public' } });
    const named = { before: ['a/1'], after: ['a/2'] };
    expect(splitEffect(before, after, { members, own: false, keyed: ['a'], named })).toEqual([
      'a/2 is loaded and stays loaded, whatever the rule of its endpoint says',
      'a/1 stays loaded only as long as the rule of its endpoint, or another split, wants it',
      'anybody may call it without a key, also what wants one under its own name: a',
      '10 % to a/2, 90 % to a',
    ]);
  });
});
