import type { EndpointSpec } from '@perch/contracts';
import type { Placement, Presence } from '@perch/fleet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EndpointWorld, type KnownDeployment, planEndpoint, type WantedVersion } from './endpoint.plan.ts';
import { resolveDeployment, sourceDigest } from './resolve/engine.plan.ts';
import { parseSpec } from './spec.plan.ts';

const parse = (more: object = {}) =>
  parseSpec({ name: 'e', model: { project: 'p', name: 'm', maxVersions: 2 }, ...more });

function wantedVersion(spec: EndpointSpec, number: number, fault: string | null = null): WantedVersion {
  const files = [{ path: 'model.onnx', sha256: 'a'.repeat(64), size: 1 }];
  const version = { number, manifestDigest: String(number).repeat(64).slice(0, 64), signature: null, files };
  const resolved = resolveDeployment(spec, version);
  const source = sourceDigest(spec, version);
  return fault === null
    ? { version: number, sourceDigest: source, fault, ...resolved }
    : { version: number, sourceDigest: source, digest: `fault ${number}`, tritonModel: 'x', body: null, fault };
}

/** The database and the servers, as plain values. */
class Sandbox {
  spec: EndpointSpec | null = parse();
  versions: number[] = [];
  readonly servers = new Map<string, { presence: Presence; pool: string }>();
  readonly broken = new Set<number>();
  readonly slow = new Set<number>();
  readonly unservable = new Set<number>();
  deployments: KnownDeployment[] = [];
  places: {
    deployment: string;
    server: string;
    tritonModel: string;
    leaving: boolean;
    proved: boolean;
    state: string | null;
  }[] = [];
  route: ReturnType<typeof planEndpoint>['route'] = null;
  status: ReturnType<typeof planEndpoint>['status'] | undefined;
  private ids = 0;
  private atRest = false;

  world(): EndpointWorld {
    const { spec } = this;
    const wanted = spec
      ? [...this.versions]
          .sort((a, b) => b - a)
          .slice(0, 2)
          .map((n) => wantedVersion(spec, n))
      : [];
    return {
      name: 'e',
      generation: 1,
      spec,
      modelExists: true,
      wanted,
      deployments: this.deployments,
      placements: this.places.map((place): Placement => ({
        endpoint: 'e', deployment: place.deployment, server: place.server, serverName: place.server,
        tritonModel: place.tritonModel, state: place.leaving ? 'leaving' : 'active', proved: place.proved,
        routedRevision: null, unroutedRevision: null, presence: this.servers.get(place.server)!.presence,
        observed: place.state === null ? null : { state: place.state, reason: place.state, inputs: null, outputs: null, maxBatchSize: null },
      })), // biome-ignore format: one record
      servers: [...this.servers]
        .filter(([, { presence, pool }]) => presence !== 'lost' && pool === spec?.fleet.pool)
        .map(([id, { presence }]) => ({
          id,
          name: id,
          presence,
          labels: {},
          reported: true,
          drain: null,
          external: false,
          device: 'cpu',
          facts: null,
          usage: null,
          models: this.places.filter(({ server }) => server === id).length,
          moving: 0,
          placed: { ramBytes: 0, gpuBytes: 0 },
        })),
      problems: new Map(
        this.deployments
          .filter(({ version }) => this.unservable.has(version))
          .map(({ id }) => [id, 'router r1: no tokenizer']),
      ),
    };
  }

  /** One pass; true: it changed something. */
  pass(): boolean {
    const plan = planEndpoint(this.world(), () => `d${++this.ids}`);
    for (const { id, version, digest, tritonModel, body, state, reason } of plan.create)
      this.deployments.push({ id, version, digest, tritonModel, body, state, reason });
    for (const { id, state, reason } of plan.states)
      Object.assign(this.deployments.find((one) => one.id === id)!, { state, reason });
    for (const { deployment, server, tritonModel } of plan.places.place) {
      const known = this.places.find((place) => place.deployment === deployment && place.server === server);
      if (known) known.leaving = false;
      else this.places.push({ deployment, server, tritonModel, leaving: false, proved: false, state: null });
    }
    for (const { deployment, server } of plan.places.leave)
      this.places.find((place) => place.deployment === deployment && place.server === server)!.leaving = true;
    this.route = plan.route;
    this.status = plan.status;
    this.checkRoute();
    const changes = plan.create.length + plan.states.length + plan.places.place.length + plan.places.leave.length;
    // Only what was placed asks for another look; nothing else may leave work undone.
    if (this.atRest) expect(changes).toBe(0);
    this.atRest = plan.places.place.length === 0;
    return changes > 0;
  }

  /** A table may be published after any pass: what it holds is proved and stays. */
  private checkRoute(): void {
    for (const target of this.route?.targets ?? [])
      for (const server of target.servers) {
        const place = this.places.find((one) => one.deployment === target.deployment && one.server === server);
        expect(place).toMatchObject({ leaving: false, proved: true });
      }
  }

  settle(): void {
    this.atRest = false;
    for (let pass = 0; this.pass(); pass += 1) if (pass > 8) throw new Error('plans do not come to rest');
  }

  /** Live servers do what they are told. */
  act(): void {
    for (const place of this.places) {
      if (this.servers.get(place.server)!.presence !== 'live') continue;
      const { version } = this.deployments.find(({ id }) => id === place.deployment)!;
      place.state = this.broken.has(version) ? 'failed' : this.slow.has(version) ? 'loading' : 'ready';
      place.proved = place.state === 'ready' || (place.proved && place.state === 'loading');
    }
  }

  /** Routers acknowledged: what leaves is let go. */
  release(): void {
    this.places = this.places.filter(({ leaving }) => !leaving);
    this.deployments = this.deployments.filter(
      ({ id, state }) => state !== 'draining' || this.places.some(({ deployment }) => deployment === id),
    );
  }

  converge(): void {
    for (let turn = 0; turn < 6; turn += 1) {
      this.settle();
      this.act();
      this.settle();
      this.release();
    }
    this.settle();
  }

  get serving(): number[] {
    return this.route?.targets.map(({ version }) => version) ?? [];
  }
}

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
    box.spec = parse({ fleet: { replicas, pool }, engine: { maxBatchSize } });
  }),
  fc.constant((box: Sandbox) => {
    box.spec = null;
  }),
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
