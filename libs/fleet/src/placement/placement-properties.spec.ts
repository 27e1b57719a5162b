import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  gibibyte,
  plannedDeployment,
  plannedServer,
  serverFacts,
  variant,
} from '../../../../test/support/placement.ts';
import { reservedBytes } from './memory.plan.ts';
import { planPlacement } from './placement.plan.ts';
import {
  type CurrentPlacement,
  noFacts,
  type PlacementPlan,
  type PlannedDeployment,
  type PlannedServer,
} from './placement-world.ts';

type Machine = Pick<PlannedServer, 'id' | 'presence' | 'drain'> & { host: string; totalGib: number | null };

/** A pool whose servers do at once what they are told. Deployments are planned one by one, as endpoints are. */
class Pool {
  machines: Machine[] = [];
  deployments: PlannedDeployment[] = [];
  places: CurrentPlacement[] = [];
  /** `<server> <triton model>` that do not load. */
  broken = new Set<string>();
  moves = 0;

  servers(): PlannedServer[] {
    return this.machines
      .filter(({ presence }) => presence !== 'lost')
      .map(({ id, presence, drain, host, totalGib }) => {
        const here = this.places.filter(({ server }) => server === id);
        const counted = here.filter(({ leaving, yields }) => !leaving && !yields);
        return plannedServer(id, {
          presence,
          drain,
          facts: serverFacts({ host, ramBytes: totalGib === null ? null : totalGib * gibibyte }),
          models: counted.length,
          moving: here.filter(({ leaving, yields }) => !leaving && yields).length,
          placed: { ramBytes: here.reduce((sum, place) => sum + this.sizeOf(place), 0), gpuBytes: 0 },
        });
      });
  }

  private sizeOf({ deployment, tritonModel }: CurrentPlacement): number {
    const known = this.deployments.find(({ id }) => id === deployment)!;
    return known.variants.find((one) => one.tritonModel === tritonModel)!.requires.memoryBytes ?? 0;
  }

  plan(deployment: PlannedDeployment): PlacementPlan {
    const failures = new Map([...this.failed].map((key) => [key, 'bad file']));
    return planPlacement([deployment], this.servers(), this.placesOf(deployment.id), { ...noFacts, failures });
  }
  private readonly failed = new Set<string>();

  placesOf(id: string): CurrentPlacement[] {
    return this.places.filter(({ deployment }) => deployment === id);
  }

  readyOf(id: string): number {
    const live = new Set(this.machines.filter(({ presence }) => presence === 'live').map((machine) => machine.id));
    return this.placesOf(id).filter(({ ready, leaving, server }) => ready && !leaving && live.has(server)).length;
  }

  /** One pass over every deployment; false: nothing was to be done. */
  pass(): boolean {
    let changed = false;
    for (const deployment of this.deployments) {
      const plan = this.plan(deployment);
      changed ||= plan.add.length + plan.leave.length + plan.yields.length > 0;
      this.apply(deployment, plan);
      this.check();
    }
    this.act();
    return changed;
  }

  private apply({ id, replicas, minReplicas }: PlannedDeployment, plan: PlacementPlan): void {
    for (const { server, variant: chosen, instead } of plan.add) {
      if (instead) this.failed.add(`${server} ${instead.tritonModel}`);
      this.places = this.places.filter((place) => !(place.deployment === id && place.server === server));
      this.places.push({ deployment: id, server, tritonModel: chosen.tritonModel, ready: false, failure: null });
    }
    for (const { server, yields } of plan.yields) {
      this.find(id, server).yields = yields;
      if (yields) this.moves += 1;
    }
    const before = this.readyOf(id);
    for (const { server } of plan.leave) {
      const place = this.find(id, server);
      if (place.failure) this.failed.add(`${server} ${place.tritonModel}`);
      place.leaving = true;
    }
    const forced = plan.leave.some(({ server }) => this.machines.find((one) => one.id === server)?.drain === 'forced');
    if (!forced && before >= Math.min(minReplicas, replicas))
      expect(this.readyOf(id)).toBeGreaterThanOrEqual(Math.min(minReplicas, replicas));
  }

  private find(id: string, server: string): CurrentPlacement {
    return this.places.find((place) => place.deployment === id && place.server === server)!;
  }

  /** Never too much on a server, never two of one deployment. */
  private check(): void {
    for (const { id, totalGib } of this.machines) {
      const here = this.places.filter(({ server }) => server === id);
      expect(new Set(here.map(({ deployment }) => deployment)).size).toBe(here.length);
      if (totalGib === null) continue;
      const bytes = here.reduce((sum, place) => sum + this.sizeOf(place), 0);
      expect(bytes).toBeLessThanOrEqual(totalGib * gibibyte - reservedBytes(totalGib * gibibyte) + 1);
    }
  }

  /** Live servers load what they are told, and let go of what may go. */
  act(): void {
    const isLive = (id: string) => this.machines.some((machine) => machine.id === id && machine.presence === 'live');
    this.places = this.places.filter(({ leaving }) => !leaving);
    for (const place of this.places) {
      if (!isLive(place.server)) continue;
      const fails = this.broken.has(`${place.server} ${place.tritonModel}`);
      place.ready = !fails;
      place.failure = fails ? 'bad file' : null;
    }
  }

  settle(): void {
    for (let pass = 0; this.pass(); pass += 1) expect(pass, 'plans do not come to rest').toBeLessThan(150);
    expect(this.pass()).toBe(false);
  }
}

const names = ['a', 'b', 'c', 'd', 'e'];
const machine = fc.record({
  host: fc.constantFrom('x', 'y', 'z'),
  totalGib: fc.constantFrom(null, 4, 16),
});
const deployment = fc.record({
  replicas: fc.integer({ min: 1, max: 4 }),
  minReplicas: fc.integer({ min: 1, max: 3 }),
  sizes: fc.array(fc.constantFrom(0.1, 0.5, 1, 3), { minLength: 1, maxLength: 2 }),
});
const event = fc.record({
  kind: fc.constantFrom('drain', 'force', 'undrain', 'lose', 'silence', 'return', 'resize', 'break'),
  server: fc.constantFrom(...names),
  deployment: fc.nat(20),
});
const worlds = fc.record({
  machines: fc.array(machine, { minLength: 1, maxLength: 5 }),
  deployments: fc.array(deployment, { minLength: 1, maxLength: 12 }),
  events: fc.array(event, { maxLength: 8 }),
});

type World = typeof worlds extends fc.Arbitrary<infer T> ? T : never;

function poolOf({ machines, deployments }: World): Pool {
  const pool = new Pool();
  pool.machines = machines.map((one, at) => ({ id: names[at]!, presence: 'live', drain: null, ...one }));
  pool.deployments = deployments.map(({ replicas, minReplicas, sizes }, at) =>
    plannedDeployment(`d${at}`, {
      replicas,
      minReplicas: Math.min(replicas, minReplicas),
      variants: sizes.map((gib, format) => variant(`m${at}-${format}`, { memoryBytes: gib * gibibyte })),
    }),
  );
  return pool;
}

function happen(pool: Pool, { kind, server, deployment: at }: World['events'][number]): void {
  const found = pool.machines.find(({ id }) => id === server);
  const target = pool.deployments[at % pool.deployments.length]!;
  if (kind === 'resize') target.replicas = Math.max(target.minReplicas, (target.replicas % 4) + 1);
  if (!found) return;
  if (kind === 'break') pool.broken.add(`${server} ${target.variants[0]!.tritonModel}`);
  if (kind === 'drain' || kind === 'force') found.drain = kind === 'force' ? 'forced' : 'orderly';
  if (kind === 'undrain') found.drain = null;
  if (kind === 'lose' || kind === 'silence') found.presence = kind === 'lose' ? 'lost' : 'silent';
  if (kind === 'return') found.presence = 'live';
}

describe('placements, whatever happens to servers', () => {
  it('come to rest, never overcommit or double, never fall below minReplicas by their own moves', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const pool = poolOf(world);
        pool.settle();
        for (const one of world.events) {
          happen(pool, one);
          pool.act();
          pool.settle();
        }
      }),
      { numRuns: 150 },
    );
  });

  it('do not depend on the order in which anything is told', () => {
    fc.assert(
      fc.property(worlds, fc.infiniteStream(fc.nat(1_000)), (world, dice) => {
        const pool = poolOf(world);
        pool.pass();
        const shuffled = <T>(items: readonly T[]): T[] =>
          items.map((item) => ({ item, at: dice.next().value as number })).sort((a, b) => a.at - b.at).map(({ item }) => item); // biome-ignore format: one row reads better
        for (const one of pool.deployments) {
          const current = pool.placesOf(one.id);
          const [first, second] = [
            planPlacement([one], pool.servers(), current),
            planPlacement([one], shuffled(pool.servers()), shuffled(current)),
          ];
          const said = ({ add, leave, yields }: PlacementPlan) => [
            add.map((placing) => `${placing.server} ${placing.variant.tritonModel}`),
            leave.map(({ server }) => server).sort(),
            yields,
          ];
          expect(said(second)).toEqual(said(first));
        }
      }),
      { numRuns: 100 },
    );
  });

  it('move only what has to: losing a server touches nothing but what was on it', () => {
    fc.assert(
      fc.property(worlds, fc.constantFrom(...names), (world, name) => {
        const pool = poolOf(world);
        pool.settle();
        const lost = pool.machines.find(({ id }) => id === name);
        if (!lost) return;
        const touched = new Set(pool.places.filter(({ server }) => server === name).map(({ deployment: id }) => id));
        lost.presence = 'lost';
        for (const one of pool.deployments) {
          const plan = pool.plan(one);
          const isShort = pool.placesOf(one.id).length < one.replicas;
          if (!touched.has(one.id) && !isShort) expect([plan.add, plan.leave, plan.yields]).toEqual([[], [], []]);
          expect(plan.leave.every(({ server }) => server === name)).toBe(true);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('spread to a server that joins only as far as it pays, and then stay', () => {
    const pool = new Pool();
    const host = (id: string): Machine => ({ id, host: id, presence: 'live', drain: null, totalGib: null });
    pool.machines = [host('a'), host('b')];
    pool.deployments = Array.from({ length: 60 }, (_, at) => plannedDeployment(`d${at}`));
    pool.settle();
    expect(pool.servers().map(({ models }) => models)).toEqual([30, 30]);
    pool.machines.push(host('c'));
    pool.settle();
    const [a, b, c] = pool.servers().map(({ models }) => models);
    expect(c).toBeGreaterThanOrEqual(10);
    expect(Math.max(a!, b!)).toBeLessThanOrEqual(25);
    expect(pool.moves).toBe(c);
    const before = JSON.stringify(pool.places);
    pool.settle();
    expect(JSON.stringify(pool.places)).toBe(before);
  });
});
