import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, Sandbox } from '../endpoint-world.fake.ts';
import { type ForcedRollout, noForce, planTraffic, type TrafficForce } from './traffic.plan.ts';

const trial: ForcedRollout = {
  id: 'r', epoch: 0, salt: 's', leaseMs: 15_000, slowMs: null, slowGraceMs: 0, metrics: [], fallback: null, shadow: null, feedbackKey: null,
}; // biome-ignore format: one record
const progressive = (more: object = {}) => parse({ traffic: { mode: 'progressive' }, ...more });

const one = (version: number, digest = `x${version}`) => ({ version, digest });
const seen = (version: number, state: 'ready' | 'loading' | 'draining' = 'ready', digest = `x${version}`) => ({
  id: `d-${digest}`, version, digest, state,
}); // biome-ignore format: one record

describe('which deployments share the traffic', () => {
  const plan = (more: Partial<Parameters<typeof planTraffic>[0]>) =>
    planTraffic({
      force: noForce,
      rule: [],
      refusals: [],
      stored: [],
      routed: [],
      refused: new Set(),
      known: [],
      ...more,
    });
  const force = (more: Partial<TrafficForce>): TrafficForce => ({ ...noForce, ...more });
  it.each<[string, Parameters<typeof plan>[0], string[], string | null, string | null]>([
    ['nothing at all', {}, [], null, null],
    ['the first one, before it serves', { rule: [one(1)] }, ['x1'], null, 'x1'],
    ['the first one serves', { rule: [one(1)], known: [seen(1)] }, ['x1'], 'x1', 'x1'],
    ['whoever has the traffic is stable, not the newest', { rule: [one(2)], known: [seen(2), seen(1)], routed: [{ deployment: 'd-x1', share: 1 }] }, ['x1', 'x2'], 'x1', 'x2'],
    ['the heaviest of several', { rule: [one(2), one(1)], known: [seen(2), seen(1)], routed: [{ deployment: 'd-x2', share: 0.1 }, { deployment: 'd-x1', share: 0.9 }] }, ['x1', 'x2'], 'x1', 'x2'],
    ['who has the traffic cannot serve: the newest that can', { rule: [one(3), one(2)], known: [seen(3, 'loading'), seen(2), seen(1, 'loading')], routed: [{ deployment: 'd-x1', share: 1 }] }, ['x2', 'x3'], 'x2', 'x3'],
    ['what was said stays said', { force: force({ stable: 'x1', candidate: 'x2', keep: ['x0'] }), rule: [one(3)], known: [seen(3), seen(2), seen(1), seen(0)] }, ['x1', 'x2', 'x0', 'x3'], 'x1', 'x3'],
    ['a stable one that is gone comes back', { force: force({ stable: 'x1' }), rule: [one(2)], stored: [one(1)], known: [seen(2)] }, ['x1', 'x2'], 'x1', 'x2'],
    ['one that cannot come back is none', { force: force({ stable: 'x1' }), rule: [one(2)], known: [seen(2)] }, ['x2'], 'x2', 'x2'],
    ['a refused stable one is none', { force: force({ stable: 'x2' }), rule: [one(1)], refusals: [one(2)], refused: new Set(['x2']), known: [seen(2), seen(1)] }, ['x1'], 'x1', 'x1'],
    ['refused ones are not tried and not kept', { force: force({ stable: 'x1', candidate: 'x2', keep: ['x3'] }), rule: [one(1)], refused: new Set(['x2', 'x3']), known: [seen(3), seen(2), seen(1)] }, ['x1'], 'x1', 'x1'],
    ['neither the rule nor the traffic knows who serves', { rule: [one(2)], known: [seen(2, 'loading'), seen(1)] }, ['x1', 'x2'], 'x1', 'x2'],
    ['held: nothing new', { force: force({ stable: 'x1', held: 'olga' }), rule: [one(2)], known: [seen(1)] }, ['x1'], 'x1', 'x2'],
    ['held: what is there stays', { force: force({ stable: 'x1', held: 'olga' }), rule: [one(2)], known: [seen(2), seen(1)] }, ['x1', 'x2'], 'x1', 'x2'],
    ['held, and nothing serves: the rule goes on', { force: force({ held: 'olga' }), rule: [one(2)] }, ['x2'], null, 'x2'],
    ['no version is left', { force: force({ stable: 'x1', candidate: 'x2' }), known: [seen(2), seen(1)] }, [], null, null],
    ['all that is left was refused', { force: force({ stable: 'x1' }), refusals: [one(2)], known: [seen(1)] }, ['x1'], 'x1', null],
    ['refused settings of the stable version: not back to an older one', { force: force({ stable: 'old' }), rule: [one(6)], refusals: [one(7, 'new')], known: [seen(7, 'ready', 'old')] }, ['old'], 'old', 'old'],
    ['the stable version is unpublished: back to an older one', { force: force({ stable: 'x7' }), rule: [one(6)], refusals: [one(8)], known: [seen(7)] }, ['x7', 'x6'], 'x7', 'x6'],
  ])('%s', (_what, world, wanted, stable, newest) => {
    const planned = plan(world);
    expect(planned.wanted.map(({ digest }) => digest)).toEqual(wanted);
    expect(planned.force.stable).toBe(stable);
    expect(planned.wish.newest?.digest ?? null).toBe(newest);
    // What it leads to changes nothing.
    expect(plan({ ...world, force: planned.force }).force).toEqual(planned.force);
  }); // biome-ignore format: rows
});

type Event = (box: Sandbox) => void;
const version = fc.integer({ min: 1, max: 5 });
const toggle = (set: Set<number>, n: number) => {
  if (!set.delete(n)) set.add(n);
};
const pick = <T>(items: readonly T[], at: number): T | undefined => items[at % Math.max(1, items.length)];
const say = (box: Sandbox, more: Partial<TrafficForce>) => {
  if (box.isProgressive) box.force = { ...box.force, ...more };
};
const place = fc.nat({ max: 6 });
const share = fc.constantFrom(0, 0.01, 0.25, 0.5, 0.99, 1);
const events: fc.Arbitrary<Event> = fc.oneof(
  version.map((n) => (box: Sandbox) => {
    box.versions = [...new Set([...box.versions, n])];
  }),
  version.map((n) => (box: Sandbox) => {
    box.versions = box.versions.filter((other) => other !== n);
  }),
  version.map((n) => (box: Sandbox) => toggle(box.broken, n)),
  version.map((n) => (box: Sandbox) => toggle(box.slow, n)),
  version.map((n) => (box: Sandbox) => toggle(box.unservable, n)),
  fc.tuple(fc.constantFrom('s1', 's2'), fc.constantFrom('live' as const, 'silent' as const, 'lost' as const)).map(
    ([id, presence]) =>
      (box: Sandbox) =>
        void box.servers.set(id, { presence, pool: 'default' }),
  ),
  fc.constantFrom(0, 4).map((maxBatchSize) => (box: Sandbox) => box.change(progressive({ engine: { maxBatchSize } }))),
  fc
    .constantFrom<object>(
      { mode: 'newest' },
      { mode: 'weighted', newestFirst: [0.1, 0.9] },
      { mode: 'progressive' },
      { mode: 'progressive' },
    )
    .map((traffic) => (box: Sandbox) => box.change(parse({ traffic }))),
  fc.boolean().map((stopped) => (box: Sandbox) => box.change(progressive({ stopped }))),
  fc.tuple(place, share).map(
    ([at, part]) =>
      (box: Sandbox) =>
        say(box, { candidate: pick(box.deployments, at)?.digest ?? null, share: part, rollout: trial }),
  ),
  fc.constant((box: Sandbox) => {
    const { stable, candidate } = box.force;
    if (candidate)
      say(box, { stable: candidate, candidate: null, keep: stable ? [stable] : [], share: 0, rollout: null });
  }),
  fc.constant((box: Sandbox) => say(box, { candidate: null, keep: [], share: 0, rollout: null })),
  place.map((at) => (box: Sandbox) => {
    const digest = pick(box.deployments, at)?.digest;
    if (digest) box.refused.add(digest);
  }),
  fc.constant((box: Sandbox) => box.refused.clear()),
  fc.constantFrom(null, 'olga').map((held) => (box: Sandbox) => say(box, { held })),
  fc.constant((box: Sandbox) => box.act()),
  fc.constant((box: Sandbox) => box.act()),
  fc.constant((box: Sandbox) => box.release()),
);
const start = (): Sandbox => {
  const box = new Sandbox();
  box.change(progressive());
  box.servers.set('s1', { presence: 'live', pool: 'default' });
  return box;
};

describe('a progressive endpoint, whatever happens', () => {
  // The sandbox checks each pass: nothing refused is made or routed, only what is proved is, and shares are as they were said.
  it('comes to rest, and is never taken away by something that does not serve yet', () => {
    fc.assert(
      fc.property(fc.array(events, { minLength: 1, maxLength: 40 }), (happenings) => {
        const box = start();
        for (const happening of happenings) {
          happening(box);
          const usable = ({ deployment, version: n }: { deployment: string; version: number }) =>
            !box.unservable.has(n) && !box.refused.has(box.deployments.find(({ id }) => id === deployment)!.digest);
          const before = new Set((box.route?.targets ?? []).filter(usable).map(({ deployment }) => deployment));
          box.settle();
          const proved = box.places.some((one) => one.proved && before.has(one.deployment));
          if (box.isProgressive && before.size > 0 && proved && box.world().wanted.length > 0)
            expect(box.route!.arms.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('serves the one that was said once all is well, and holds what the rule wants besides', () => {
    fc.assert(
      fc.property(
        fc.array(events, { maxLength: 30 }),
        fc.uniqueArray(version, { minLength: 1, maxLength: 4 }),
        (happenings, versions) => {
          const box = start();
          for (const happening of happenings) {
            happening(box);
            box.settle();
          }
          box.change(progressive());
          box.versions = versions;
          for (const set of [box.broken, box.slow, box.unservable, box.refused]) set.clear();
          box.servers.set('s1', { presence: 'live', pool: 'default' });
          say(box, { candidate: null, keep: [], share: 0, rollout: null, held: null });
          box.converge();
          const rule = [...versions].sort((a, b) => b - a).slice(0, 2);
          const { stable } = box.force;
          const serving = box.deployments.find(({ id }) => id === box.route!.arms[0]!.deployment)!;
          expect([serving.digest, box.route!.arms[0]!.share]).toEqual([stable, 1]);
          expect(box.wish.newest?.version).toBe(rule[0]);
          const others = box.deployments.filter(({ digest }) => digest !== stable).map(({ version: n }) => n);
          expect(rule).toEqual(expect.arrayContaining(others));
          for (const { state } of box.deployments) expect(state).toBe('ready');
          say(box, { stable: box.wish.newest!.digest });
          box.converge();
          expect(box.deployments.map(({ version: n }) => n).sort()).toEqual([...rule].sort());
          expect(box.status).toMatchObject({ phase: 'ready', servingVersions: [rule[0]], nextVersion: null });
        },
      ),
      { numRuns: 50 },
    );
  });
});
