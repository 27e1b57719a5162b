import type { ObservedServer } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { planObserved } from './observed.plan.ts';

const since = '2026-01-01T00:00:00.000Z';
const known = (of: Record<string, string>) =>
  new Map(Object.entries(of).map(([name, state]) => [name, { state, reason: null, since }]));
const observed = (of: Record<string, string>, live = true): ObservedServer => ({
  lineage: null, revision: 0, heldRemovals: [], disk: { freeBytes: 0, cacheBytes: 0 },
  triton: { live, ready: live, name: 't', version: '2', gpus: 0 },
  models: Object.fromEntries(Object.entries(of).map(([name, state]) => [name, { state: state as 'ready', reason: null, since }])),
}); // biome-ignore format: one record

describe('what a report changes', () => {
  it.each<
    [
      string,
      Record<string, string>,
      ObservedServer,
      { changed?: string[]; gone?: string[]; proved?: string[]; broken?: string[] },
    ]
  >([
    ['the same', { a: 'ready' }, observed({ a: 'ready' }), {}],
    ['a new one', {}, observed({ a: 'loading' }), { changed: ['a'] }],
    ['it became ready', { a: 'loading' }, observed({ a: 'ready' }), { changed: ['a'], proved: ['a'] }],
    ['it broke', { a: 'ready' }, observed({ a: 'failed' }), { changed: ['a'], broken: ['a'] }],
    ['it is gone', { a: 'ready' }, observed({}), { gone: ['a'] }],
    ['the model server is down: no news', { a: 'ready' }, observed({}, false), {}],
    ['it loads again while the server comes up', { a: 'ready' }, observed({ a: 'loading' }, false), { changed: ['a'] }],
  ])('%s', (_what, before, report, expected) => {
    const { changed, gone, proved, broken } = planObserved(known(before), report);
    expect({ changed: changed.map(({ name }) => name), gone, proved, broken }).toEqual({
      changed: [],
      gone: [],
      proved: [],
      broken: [],
      ...expected,
    });
  });

  it('a time that is none does not stop the report', () => {
    const report = observed({ a: 'ready' });
    report.models['a']!.since = 'yesterday';
    expect(planObserved(new Map(), report).changed[0]!.since).toBe('1970-01-01T00:00:00.000Z');
  });
});
