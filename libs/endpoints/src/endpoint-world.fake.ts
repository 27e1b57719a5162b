import { canonicalJson, type EndpointSpec } from '@perch/contracts';
import type { Placement, Presence } from '@perch/fleet';
import { expect } from 'vitest';
import {
  type EndpointWorld,
  type KnownDeployment,
  planEndpoint,
  type Refusal,
  type WantedVersion,
} from './endpoint.plan.ts';
import { resolveDeployment, sourceDigest } from './resolve/engine.plan.ts';
import { isModelless } from './resolve/modelless.plan.ts';
import { parseSpec } from './spec.plan.ts';
import { missingDigests, noForce, noWish, type TrafficForce, type TrafficWish } from './traffic/traffic.plan.ts';

export const parse = (more: object = {}) =>
  parseSpec({ name: 'e', model: { project: 'p', name: 'm', maxVersions: 2 }, ...more });

export function wantedVersion(spec: EndpointSpec, number: number, fault: string | null = null): WantedVersion {
  const files = [{ path: 'model.onnx', sha256: 'a'.repeat(64), size: 1 }];
  const version = { number, manifestDigest: String(number).repeat(64).slice(0, 64), signature: null, files };
  const resolved = resolveDeployment(spec, version);
  const source = sourceDigest(spec, version);
  return fault === null
    ? { version: number, sourceDigest: source, fault, ...resolved }
    : { version: number, sourceDigest: source, digest: `fault ${number}`, tritonModel: 'x', body: null, fault };
}

/** The database and the servers, as plain values. */
export class Sandbox {
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
  /** Of the traffic of a progressive endpoint. */
  wish: TrafficWish = noWish;
  force: TrafficForce = noForce;
  readonly refused = new Set<string>();
  /** What deployments were made from, also those that are gone. */
  readonly made = new Map<string, WantedVersion>();
  private ids = 0;
  private atRest = false;

  world(): EndpointWorld {
    const { spec } = this;
    const { wanted, refusals } = this.follow();
    return {
      name: 'e',
      generation: 1,
      spec,
      modelExists: true,
      wanted,
      refusals,
      refused: this.refused,
      ...(this.isProgressive ? { traffic: this.traffic(wanted) } : {}),
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

  get isProgressive(): boolean {
    return this.spec?.traffic.mode === 'progressive' && !this.spec.stopped;
  }

  /** What the rule makes of the versions there are; see `WantedObserve`. */
  private follow(): { wanted: WantedVersion[]; refusals: Refusal[] } {
    const { spec } = this;
    const wanted: WantedVersion[] = [];
    const refusals: Refusal[] = [];
    for (const number of spec && !spec.stopped ? [...this.versions].sort((a, b) => b - a) : []) {
      if (wanted.length === 2) break;
      const wish = wantedVersion(spec!, number);
      if (this.refused.has(wish.digest)) refusals.push({ version: number, digest: wish.digest, reason: 'it erred' });
      else wanted.push(wish);
    }
    for (const wish of wanted) this.made.set(wish.digest, wish);
    return { wanted, refusals };
  }

  private traffic(wanted: readonly WantedVersion[]): NonNullable<EndpointWorld['traffic']> {
    const { wish, force, route, versions } = this;
    const missing = missingDigests(force, wanted, this.deployments).flatMap((digest) => this.made.get(digest) ?? []);
    return {
      wish,
      force,
      stored: missing.filter(({ version }) => versions.includes(version)),
      routed: route?.arms ?? [],
    };
  }

  /** A generation that makes it progressive, or no longer, ends what was said of its traffic. */
  change(spec: EndpointSpec | null): void {
    if ((this.spec?.traffic.mode === 'progressive') !== (spec?.traffic.mode === 'progressive'))
      Object.assign(this, { wish: noWish, force: noForce });
    this.spec = spec;
  }

  /** One pass; true: it changed something. */
  pass(): boolean {
    const plan = planEndpoint(this.world(), () => `d${++this.ids}`);
    for (const { digest } of plan.create) expect(this.refused).not.toContain(digest);
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
    const said = plan.traffic ? [plan.traffic.wish, plan.traffic.force] : [this.wish, this.force];
    const retold = canonicalJson(said) === canonicalJson([this.wish, this.force]) ? 0 : 1;
    [this.wish, this.force] = said as [TrafficWish, TrafficForce];
    this.checkRoute();
    if (this.isProgressive) this.checkArms();
    const changes =
      plan.create.length + plan.states.length + plan.places.place.length + plan.places.leave.length + retold;
    // Only what was placed asks for another look; nothing else may leave work undone.
    if (this.atRest) expect(changes).toBe(0);
    this.atRest = plan.places.place.length === 0 && !plan.create.some(({ body }) => isModelless(body));
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

  /** A candidate has what its rollout gives it while the stable one serves, and nobody else has anything then. */
  private checkArms(): void {
    const { arms, targets, rollout } = this.route!;
    const digestOf = (id: string) => this.deployments.find((one) => one.id === id)!.digest;
    const serves = (digest: string | null) =>
      targets.some(({ deployment, version }) => digestOf(deployment) === digest && !this.unservable.has(version));
    const shares = new Map(arms.map(({ deployment, share }) => [digestOf(deployment), share]));
    for (const { deployment } of targets) expect(this.refused).not.toContain(digestOf(deployment));
    if (targets.length > 0) expect([...shares.values()].reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 12);
    const { stable, candidate, share } = this.force;
    const tried = candidate !== stable && serves(candidate) && serves(stable);
    if (serves(stable))
      expect(Object.fromEntries(shares)).toEqual(
        Object.fromEntries(
          [[stable, tried ? 1 - share : 1], ...(tried ? [[candidate, share]] : [])].filter(
            ([, part]) => Number(part) > 0,
          ),
        ),
      );
    expect(rollout && [digestOf(rollout.stable), digestOf(rollout.candidate)]).toEqual(
      this.force.rollout && tried ? [stable, candidate] : undefined,
    );
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
