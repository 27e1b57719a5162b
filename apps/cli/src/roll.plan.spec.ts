import type { Server } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { bootOf, notBack, planRoll, rollReason } from './roll.plan.ts';

const triton = { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 };
const observed = (more: object = {}) =>
  ({ lineage: null, revision: 5, heldRemovals: [], triton, models: {}, disk: { freeBytes: 1, cacheBytes: 1 }, ...more }) as Server['observed']; // biome-ignore format: one record
const server = (name: string, more: Partial<Server> = {}): Server => ({
  id: `id of ${name}`, name, pool: 'p', http: 'h:1', grpc: 'h:2', labels: {}, live: true, lastSeenAt: null, desiredRevision: 5,
  bootId: 'b1', observed: observed(), drain: null, ...more,
}); // biome-ignore format: one record
const drainedBy = (by: string, reason: string) => ({ since: 'then', by, reason, drained: true, waitsFor: [] });

describe('which servers a roll takes', () => {
  it('all that are in service, by name, after those that an earlier run left out of service', () => {
    const { todo, skipped } = planRoll(
      [
        server('c', { drain: drainedBy('olga', rollReason) }),
        server('b'),
        server('a'),
        server('d', { drain: drainedBy('olga', 'broken fan') }),
        server('e', { live: false }),
        server('f', { live: false, drain: drainedBy('olga', `${rollReason}: new driver`) }),
        server('g'),
      ],
      new Set(['id of g', 'id of c']),
    );
    expect(todo.map(({ name }) => name)).toEqual(['c', 'f', 'a', 'b']);
    expect(skipped.map(({ server: { name }, why }) => `${name}: ${why}`)).toEqual([
      'd: drained by olga',
      'e: it does not report',
      'g: done before',
    ]);
  });
});

describe('whether a server is back', () => {
  it.each<[string, Partial<Server>, string | undefined]>([
    ['well', {}, undefined],
    ['silent', { live: false }, 'it does not report'],
    ['never heard of', { observed: null }, 'it does not report'],
    ['without its model server', { observed: observed({ triton: { ...triton, live: false } }) }, 'its model server does not answer'],
    ['not ready', { observed: observed({ triton: { ...triton, ready: false } }) }, 'its model server is not ready'],
    ['behind', { desiredRevision: 6 }, 'its agent has not taken its document'],
  ])('%s', (_what, more, why) => expect(notBack(server('a', more))).toBe(why)); // biome-ignore format: a table

  it('a restart of the agent, or of the model server under it, is another start', () => {
    const supervision = (restarts: number) => observed({ supervision: { state: 'running', restarts, lastExit: null, console: [] } }); // biome-ignore format: one row reads better
    const starts = [server('a'), server('a', { bootId: 'b2' }), server('a', { observed: supervision(0) }), server('a', { observed: supervision(1) })]; // biome-ignore format: one row reads better
    expect(new Set(starts.map(bootOf)).size).toBe(4);
    expect(bootOf(server('a'))).toBe(bootOf(server('a', { live: false })));
  });
});
