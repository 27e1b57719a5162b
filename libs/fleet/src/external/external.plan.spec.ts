import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ExternalSight, planExternal } from './external.plan.ts';

const ours = 'scale-v1-0123456789ab';
const before = '2026-01-01T00:00:00.000Z';
const now = '2026-02-02T00:00:00.000Z';
const row = (state: string, reason: string | null = null) => ({ state, reason, since: before });
const sight = (fields: Partial<ExternalSight>): ExternalSight => ({
  known: new Map(),
  desired: new Set(),
  index: [],
  loaded: new Set(),
  loading: new Set(),
  failures: new Map(),
  mayUnload: true,
  now,
  ...fields,
});
const entry = (name: string, version: string, state: string, reason = '') => ({ name, version, state, reason });
const states = (plan: ReturnType<typeof planExternal>) =>
  Object.fromEntries(
    Object.entries(plan.models).map(([key, { state, reason }]) => [key, reason ? `${state}: ${reason}` : state]),
  );

describe('what a Triton without an agent holds by its owner’s word', () => {
  it.each<[string, ExternalSight['index'], Record<string, string>]>([
    ['versions side by side', [entry('m', '1', 'READY'), entry('m', '2', 'READY')], { 'm/1': 'ready', 'm/2': 'ready' }],
    ['one that comes', [entry('m', '1', 'LOADING')], { 'm/1': 'loading' }],
    ['one that goes', [entry('m', '1', 'UNLOADING')], { 'm/1': 'unloading' }],
    ['one that was unloaded', [entry('m', '1', 'UNAVAILABLE', 'unloaded')], {}],
    ['one that failed', [entry('m', '1', 'UNAVAILABLE', 'no such file')], { 'm/1': 'failed: no such file' }],
    ['one that was never loaded', [entry('m', '', '')], {}],
    ['a name that looks like ours', [entry(ours, '1', 'READY')], { [`${ours}/1`]: 'ready' }],
  ])('%s', (_what, index, wanted) => {
    const plan = planExternal(sight({ index }));
    expect(states(plan)).toEqual(wanted);
    expect([plan.load, plan.unload]).toEqual([[], []]);
  });

  it('is described once, when it became ready, and keeps its time', () => {
    const index = [entry('m', '1', 'READY'), entry('m', '2', 'READY')];
    const plan = planExternal(sight({ index, known: new Map([['m/1', row('ready')]]) }));
    expect(plan.describe).toEqual([{ key: 'm/2', model: 'm' }]);
    expect([plan.models['m/1']!.since, plan.models['m/2']!.since]).toEqual([before, now]);
  });
});

describe('what we load into it', () => {
  const desired = new Set([ours]);
  it.each<[string, Partial<ExternalSight>, string | undefined, string[], string[]]>([
    ['is loaded', {}, 'loading', [ours], []],
    ['is not loaded twice at once', { loading: desired }, 'loading', [], []],
    ['is ready once it is loaded', { loaded: desired }, 'ready', [], []],
    ['is loaded again after a restart', { known: new Map([[ours, row('ready')]]) }, 'loading', [ours], []],
    ['is not tried again once it failed', { known: new Map([[ours, row('failed', 'bad')]]) }, 'failed: bad', [], []],
    ['fails in its words', { failures: new Map([[ours, 'bad']]) }, 'failed: bad', [], []],
    ['is ready though it failed before', { failures: new Map([[ours, 'bad']]), loaded: desired }, 'ready', [], []],
    ['is unloaded', { desired: new Set(), loaded: desired, known: new Map([[ours, row('ready')]]) }, 'unloading', [], [ours]],
    ['stays while a restored database is not confirmed', { desired: new Set(), loaded: desired, known: new Map([[ours, row('ready')]]), mayUnload: false }, 'ready', [], []],
    ['is gone', { desired: new Set(), known: new Map([[ours, row('unloading')]]) }, undefined, [], []],
    ['of another installation is left alone', { desired: new Set(), loaded: desired }, undefined, [], []],
  ])('%s', (_what, fields, state, load, unload) => {
    const plan = planExternal(sight({ desired, ...fields }));
    expect([states(plan)[ours], plan.load, plan.unload]).toEqual([state, load, unload]);
  }); // biome-ignore format: a table

  it('never touches what we did not load, and comes to rest', () => {
    const name = fc.constantFrom(ours, 'scale-v2-0123456789ab', 'theirs', 'theirs-too');
    const world = fc.record({
      desired: fc.uniqueArray(fc.constantFrom(ours, 'scale-v2-0123456789ab')),
      theirs: fc.uniqueArray(fc.constantFrom('theirs', 'theirs-too')),
      restarts: fc.array(fc.boolean(), { maxLength: 4 }),
      stray: fc.option(name),
    });
    fc.assert(
      fc.property(world, ({ desired, theirs, restarts, stray }) => {
        let loaded = new Set<string>([...theirs, ...(stray ? [stray] : [])]);
        let known = new Map<string, ReturnType<typeof row>>();
        const index = theirs.map((one) => entry(one, '1', 'READY'));
        const look = () => {
          const plan = planExternal(sight({ desired: new Set(desired), index, loaded, known }));
          for (const one of plan.unload) {
            expect(known.has(one)).toBe(true);
            expect(theirs).not.toContain(one);
            loaded.delete(one);
          }
          for (const one of plan.load) loaded.add(one);
          known = new Map(
            Object.entries(plan.models).map(([key, { state, reason, since }]) => [key, { state, reason, since }]),
          );
          return plan;
        };
        for (const restart of [...restarts, false]) {
          if (restart) loaded = new Set<string>(theirs);
          look();
          look();
          const last = look();
          expect([last.load, last.unload]).toEqual([[], []]);
          for (const one of desired) expect(last.models[one]?.state).toBe('ready');
          for (const one of theirs) expect(last.models[`${one}/1`]?.state).toBe('ready');
        }
      }),
    );
  });
});
