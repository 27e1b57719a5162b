import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CurrentPlacement, type PlannedServer, planPlacement } from './placement.plan.ts';

const live = (id: string, models = 0): PlannedServer => ({ id, presence: 'live', models });
const silent = (id: string): PlannedServer => ({ id, presence: 'silent', models: 0 });
const wants = (replicas: number, id = 'd', tritonModel = 'm') => ({ id, tritonModel, replicas });
const at = (server: string, more: Partial<CurrentPlacement> = {}): CurrentPlacement => ({
  deployment: 'd',
  server,
  tritonModel: 'm',
  ready: true,
  ...more,
});
const words = ({ add, leave, short }: ReturnType<typeof planPlacement>) => ({
  add: add.map(({ deployment, server }) => `${deployment} ${server}`),
  leave: leave.map(({ deployment, server }) => `${deployment} ${server}`),
  short: [...short.values()],
});

describe('which servers hold a deployment', () => {
  it.each<[string, ReturnType<typeof wants>[], PlannedServer[], CurrentPlacement[], Partial<ReturnType<typeof words>>]>(
    [
      ['no servers', [wants(1)], [], [], { short: ['no live server in its pool'] }],
      ['the only one', [wants(1)], [live('a')], [], { add: ['d a'] }],
      ['the least loaded', [wants(1)], [live('a', 5), live('b', 1), live('c', 3)], [], { add: ['d b'] }],
      ['equal ones by id', [wants(2)], [live('c'), live('b'), live('a')], [], { add: ['d a', 'd b'] }],
      [
        'one that holds the same model anyway',
        [wants(1)],
        [live('a'), live('b', 9)],
        [at('b', { deployment: 'other' })],
        { add: ['d b'] },
      ],
      [
        'one from which the same model is just leaving',
        [wants(1)],
        [live('a'), live('b', 9)],
        [at('b', { leaving: true })],
        { add: ['d b'] },
      ],
      [
        'fewer than wanted',
        [wants(3)],
        [live('a')],
        [],
        { add: ['d a'], short: ['wants 3 servers, its pool has 1 live'] },
      ],
      ['no new one on a silent server', [wants(1)], [silent('a'), live('b', 9)], [], { add: ['d b'] }],
      ['only silent ones', [wants(1)], [silent('a')], [], { short: ['no live server in its pool'] }],
      ['in step', [wants(1)], [live('a'), live('b')], [at('a')], {}],
      ['what is placed on a silent server stays', [wants(1)], [silent('a'), live('b')], [at('a')], {}],
      ['one more', [wants(2)], [live('a'), live('b')], [at('a')], { add: ['d b'] }],
      ['one less, once the rest is ready', [wants(1)], [live('a'), live('b')], [at('a'), at('b')], { leave: ['d b'] }],
      [
        'one less: the one that is not ready',
        [wants(1)],
        [live('a'), live('b')],
        [at('a', { ready: false }), at('b')],
        { leave: ['d a'] },
      ],
      [
        'one less, but none is ready',
        [wants(1)],
        [live('a'), live('b')],
        [at('a', { ready: false }), at('b', { ready: false })],
        {},
      ],
      ['a lost server, alone: it stays', [wants(1)], [], [at('lost')], { short: ['no live server in its pool'] }],
      ['a lost server: another one first', [wants(1)], [live('b')], [at('lost')], { add: ['d b'] }],
      [
        'a lost server: the other is not ready yet',
        [wants(1)],
        [live('b')],
        [at('lost'), at('b', { ready: false })],
        {},
      ],
      ['a lost server: the other is ready', [wants(1)], [live('b')], [at('lost'), at('b')], { leave: ['d lost'] }],
      [
        'each on its own by load',
        [wants(1, 'x', 'mx'), wants(1, 'y', 'my')],
        [live('a'), live('b')],
        [],
        { add: ['x a', 'y b'] },
      ],
    ],
  )('%s', (_what, deployments, servers, current, expected) => {
    expect(words(planPlacement(deployments, servers, current))).toEqual({ add: [], leave: [], short: [], ...expected });
  });

  const ids = ['a', 'b', 'c', 'd', 'e'];
  const worlds = fc.record({
    servers: fc.uniqueArray(
      fc.record({
        id: fc.constantFrom(...ids),
        presence: fc.constantFrom('live' as const, 'silent' as const),
        models: fc.nat(9),
      }),
      { selector: ({ id }) => id },
    ),
    current: fc.uniqueArray(fc.record({ server: fc.constantFrom(...ids), ready: fc.boolean() }), {
      selector: ({ server }) => server,
    }),
    replicas: fc.integer({ min: 1, max: 4 }),
  });
  it('never takes the last ready one, never doubles, never adds to a silent server, and comes to rest', () => {
    fc.assert(
      fc.property(worlds, ({ servers, current, replicas }) => {
        let placed = current.map(({ server, ready }) => at(server, { ready }));
        for (let turn = 0; ; turn += 1) {
          const plan = planPlacement([wants(replicas)], servers, placed);
          const leaving = new Set(plan.leave.map(({ server }) => server));
          for (const { server } of plan.add) {
            expect(servers.find(({ id }) => id === server)!.presence).toBe('live');
            expect(placed.some((place) => place.server === server)).toBe(false);
          }
          if (placed.some(({ ready }) => ready) && leaving.size > 0)
            expect(placed.some(({ ready, server }) => ready && !leaving.has(server))).toBe(true);
          if (plan.add.length + plan.leave.length === 0) break;
          expect(turn).toBeLessThan(4);
          placed = [
            ...placed.filter(({ server }) => !leaving.has(server)),
            ...plan.add.map(({ server }) => at(server)),
          ].map((place) => ({ ...place, ready: true }));
        }
        const usable = placed.filter(({ server }) => servers.some(({ id }) => id === server));
        const possible = servers.filter(
          ({ presence, id }) => presence === 'live' || placed.some(({ server }) => server === id),
        );
        if (usable.every(({ ready }) => ready)) expect(usable.length).toBe(Math.min(replicas, possible.length));
      }),
    );
  });
});
