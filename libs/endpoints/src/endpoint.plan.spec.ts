import type { Presence } from '@perch/fleet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planEndpoint } from './endpoint.plan.ts';
import { parse, Sandbox, wantedVersion } from './endpoint-world.fake.ts';

type Event = (box: Sandbox) => void;
const version = fc.integer({ min: 1, max: 5 });
const serverId = fc.constantFrom('s1', 's2', 's3');
const toggle = (set: Set<number>, n: number) => {
  if (!set.delete(n)) set.add(n);
};
const servers = fc.tuple(
  serverId,
  fc.constantFrom<Presence>('live', 'silent', 'lost'),
  fc.constantFrom('default', 'default', 'gpu'),
);
const settings = fc.tuple(fc.integer({ min: 1, max: 3 }), fc.constantFrom('default', 'gpu'), fc.constantFrom(0, 4));
const events: fc.Arbitrary<Event> = fc.oneof(
  version.map((n) => (box: Sandbox) => {
    box.versions = [...new Set([...box.versions, n])];
  }),
  version.map((n) => (box: Sandbox) => {
    box.versions = box.versions.filter((one) => one !== n);
  }),
  version.map((n) => (box: Sandbox) => toggle(box.broken, n)),
  version.map((n) => (box: Sandbox) => toggle(box.slow, n)),
  version.map((n) => (box: Sandbox) => toggle(box.unservable, n)),
  servers.map(([id, presence, pool]) => (box: Sandbox) => {
    box.servers.set(id, { presence, pool });
  }),
  settings.map(([replicas, pool, maxBatchSize]) => (box: Sandbox) => {
    box.change(parse({ fleet: { replicas, pool }, engine: { maxBatchSize } }));
  }),
  fc.constant((box: Sandbox) => box.change(null)),
  fc.constant((box: Sandbox) => box.act()),
  fc.constant((box: Sandbox) => box.release()),
);

describe('one pass over an endpoint', () => {
  it('is given a version whose files cannot be served: says so, and goes on with the others', () => {
    const box = new Sandbox();
    box.servers.set('s1', { presence: 'live', pool: 'default' });
    box.versions = [1];
    box.converge();
    const world = { ...box.world(), wanted: [wantedVersion(box.spec!, 2, 'no file'), wantedVersion(box.spec!, 1)] };
    const plan = planEndpoint(world, () => 'new');
    expect(plan.create).toMatchObject([{ version: 2, state: 'failed', reason: 'no file' }]);
    expect(plan.places.place).toEqual([]);
    expect(plan.route!.targets.map(({ version: served }) => served)).toEqual([1]);
    expect(plan.status).toMatchObject({ phase: 'blocked', reason: 'deployment_failed', servingVersions: [1] });
  });

  it('a version that routers cannot serve gets no traffic, and what drains comes back for it', () => {
    const box = new Sandbox();
    box.spec = parse({ model: { project: 'p', name: 'm', maxVersions: 1 } });
    box.servers.set('s1', { presence: 'live', pool: 'default' });
    box.versions = [1];
    box.converge();
    box.versions = [2];
    box.settle();
    box.act();
    box.settle();
    expect(box.deployments.map(({ version: n, state }) => `${n} ${state}`)).toEqual(['1 draining', '2 ready']);
    box.unservable.add(2);
    box.settle();
    expect(box.deployments.map(({ version: n, state }) => `${n} ${state}`)).toEqual(['1 ready', '2 failed']);
    expect(box.serving).toEqual([2, 1]);
    expect(box.route!.arms.map(({ deployment }) => deployment)).toEqual(['d1']);
    expect(box.status).toMatchObject({ phase: 'blocked', reason: 'deployment_failed' });
    box.unservable.clear();
    box.converge();
    expect(box.deployments.map(({ version: n, state }) => `${n} ${state}`)).toEqual(['2 ready']);
  });

  it('a removed endpoint has no route, and all of it drains', () => {
    const box = new Sandbox();
    box.servers.set('s1', { presence: 'live', pool: 'default' });
    box.versions = [1, 2];
    box.converge();
    expect(box.serving).toEqual([2, 1]);
    box.spec = null;
    box.settle();
    expect(box.route).toBeNull();
    expect(box.deployments.map(({ state }) => state)).toEqual(['draining', 'draining']);
    box.converge();
    expect(box.places).toEqual([]);
  });

  it('whatever happens: plans come to rest, nothing that is routed leaves, and service is never taken away', () => {
    fc.assert(
      fc.property(fc.array(events, { minLength: 1, maxLength: 40 }), (happenings) => {
        const box = new Sandbox();
        box.servers.set('s1', { presence: 'live', pool: 'default' });
        for (const happening of happenings) {
          happening(box);
          const before = new Set(box.serving.filter((n) => !box.unservable.has(n))); // what routers refuse serves nobody
          box.settle();
          const stillProved = box.places.some(
            ({ proved, deployment }) =>
              proved && before.has(box.deployments.find(({ id }) => id === deployment)!.version),
          );
          if (before.size > 0 && box.world().wanted.length > 0 && stillProved)
            expect(box.serving.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('once everything is well again, it serves exactly what is wanted where it is wanted', () => {
    fc.assert(
      fc.property(
        fc.array(events, { maxLength: 30 }),
        fc.uniqueArray(version, { minLength: 1, maxLength: 4 }),
        (happenings, versions) => {
          const box = new Sandbox();
          box.servers.set('s1', { presence: 'live', pool: 'default' });
          for (const happening of happenings) {
            happening(box);
            box.settle();
          }
          box.spec = parse({ fleet: { replicas: 2 } });
          box.versions = versions;
          box.broken.clear();
          box.slow.clear();
          box.unservable.clear();
          for (const id of ['s1', 's2', 's3']) box.servers.set(id, { presence: 'live', pool: 'default' });
          box.converge();
          const wanted = [...versions].sort((a, b) => b - a).slice(0, 2);
          expect(box.serving).toEqual(wanted);
          expect(box.status).toMatchObject({ phase: 'ready', servingVersions: wanted, nextVersion: null });
          expect(box.deployments.map(({ version: n, state }) => `${n} ${state}`).sort()).toEqual(
            wanted.map((n) => `${n} ready`).sort(),
          );
          for (const target of box.route!.targets) expect(target.servers).toHaveLength(2);
          expect(box.places).toHaveLength(2 * wanted.length);
        },
      ),
      { numRuns: 80 },
    );
  });
});
