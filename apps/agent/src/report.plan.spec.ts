import { digestOf, type ObservedServer, observedStates } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUrgent, planReport } from './report.plan.ts';

const server = (models: Record<string, string>, more: Partial<ObservedServer> = {}): ObservedServer => ({
  lineage: 'l',
  revision: 1,
  heldRemovals: [],
  triton: { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 },
  models: Object.fromEntries(
    Object.entries(models).map(([name, state]) => [name, { state: state as 'ready', reason: null, since: 's' }]),
  ),
  disk: { freeBytes: 1, cacheBytes: 1 },
  ...more,
});
const taken = (observed: ObservedServer) => ({ hash: digestOf(observed), observed });
const dead = { live: false, ready: false, name: '', version: '', gpus: 0 };

describe('what a report holds', () => {
  const before = taken(server({ a: 'ready', b: 'loading' }));
  it.each<[string, ObservedServer, object]>([
    ['nothing but the hash while nothing changed', before.observed, {}],
    ['the model that changed', server({ a: 'ready', b: 'ready' }), { b: { state: 'ready', reason: null, since: 's' } }],
    ['null for the one that is gone', server({ a: 'ready' }), { b: null }],
    ['no model when a figure moved', server({ a: 'ready', b: 'loading' }, { revision: 2 }), {}],
  ])('%s', (_what, now, models) => {
    const { patch, observed } = planReport(before, taken(now));
    expect(observed).toBeUndefined();
    if (now === before.observed) expect(patch).toBeUndefined();
    else expect([patch!.base, patch!.models, 'models' in patch!.observed]).toEqual([before.hash, models, false]);
  });

  it('everything at first, and when the model server comes or goes: what it holds then was not observed', () => {
    const now = server({ a: 'ready' });
    expect(planReport(undefined, taken(now))).toEqual({ observed: now });
    expect(planReport(taken(server({}, { triton: dead })), taken(now))).toEqual({ observed: now });
    const gone = server({}, { triton: dead });
    expect(planReport(taken(now), taken(gone))).toEqual({ observed: gone });
  });

  const worlds = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom(...observedStates));
  it('the state before with the changes is the state now', () => {
    fc.assert(
      fc.property(worlds, worlds, (first, second) => {
        const [old, now] = [taken(server(first)), taken(server(second))];
        const { patch } = planReport(old, now);
        const models: Record<string, unknown> = { ...old.observed.models };
        for (const [name, model] of Object.entries(patch?.models ?? {})) {
          if (model === null) delete models[name];
          else models[name] = model;
        }
        expect(digestOf({ ...now.observed, models })).toBe(now.hash);
        expect(patch === undefined).toBe(old.hash === now.hash);
      }),
    );
  });
});

describe('what is told at once', () => {
  it.each<[string, Record<string, string>, Record<string, string>, boolean]>([
    ['a model that is pulled', {}, { a: 'pulling' }, false],
    ['one that begins to load', { a: 'pulling' }, { a: 'loading' }, false],
    ['one that is ready', { a: 'loading' }, { a: 'ready' }, true],
    ['one that failed', { a: 'loading' }, { a: 'failed' }, true],
    ['one that is ready no more', { a: 'ready' }, { a: 'unloading' }, true],
    ['one that is gone', { a: 'unloading' }, {}, true],
    ['nothing', { a: 'ready' }, { a: 'ready' }, false],
  ])('%s: %#', (_what, before, now, urgent) => expect(isUrgent(server(before), server(now))).toBe(urgent));

  it('the first word, and whatever becomes of the server itself', () => {
    expect(isUrgent(undefined, server({}))).toBe(true);
    expect(isUrgent(server({}), server({}, { triton: dead }))).toBe(true);
    expect(isUrgent(server({}), server({}, { leaving: true }))).toBe(true);
    expect(isUrgent(server({}), server({}, { disk: { freeBytes: 0, cacheBytes: 2 }, revision: 9 }))).toBe(false);
  });
});
