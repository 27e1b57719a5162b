import type { DeploymentState, EndpointStatus, Route } from '@perch/contracts';
import type { Pair, Placement } from '@perch/fleet';
import { decideState, type StateDecision, servingPlacements } from './deployment.decide.ts';
import { planDeployments } from './deployment.plan.ts';
import { type Places, type PlacesWorld, planPlaces } from './places.plan.ts';
import type { DeploymentBody } from './resolve/engine.plan.ts';
import { isModelless } from './resolve/modelless.plan.ts';
import { defaultMaxVersions } from './resolve/version.plan.ts';
import { buildRoute, type RoutableDeployment } from './route/route.plan.ts';
import { type DeploymentSight, decideStatus } from './status.plan.ts';
import { planTraffic, type TrafficForce, type TrafficPlan, type TrafficWish } from './traffic/traffic.plan.ts';
import { trafficVerdict } from './traffic/traffic-status.plan.ts';

/** A version the rule wants: deployable, or with the reason why it cannot be deployed. */
export interface WantedVersion {
  version: number;
  digest: string;
  sourceDigest: string;
  tritonModel: string;
  /** Null: its files cannot be laid out. */
  body: DeploymentBody | null;
  fault: string | null;
}

/** A version that the rule wants and a rollout refused. */
export interface Refusal {
  version: number;
  digest: string;
  reason: string;
}

export interface KnownDeployment {
  id: string;
  version: number;
  digest: string;
  tritonModel: string;
  body: DeploymentBody | null;
  state: DeploymentState;
  reason: string | null;
}

/** What is known of the traffic of a progressive endpoint before the pass. */
export interface TrafficInput {
  wish: TrafficWish;
  force: TrafficForce;
  /** What a rollout names and nothing that is deployed accounts for, as it was deployed before. */
  stored: readonly WantedVersion[];
  /** Arms of the route as it stands. */
  routed: readonly { deployment: string; share: number }[];
}

/** All that one pass over an endpoint looks at. */
export interface EndpointWorld extends PlacesWorld {
  generation: number;
  modelExists: boolean;
  /** What the rule wants, newest first, without what a rollout refused. */
  wanted: readonly WantedVersion[];
  /** What the rule would want too, had it not been refused; absent = nothing. */
  refusals?: readonly Refusal[];
  /** Digests that are never deployed by themselves, whether the rule wants them or not. */
  refused?: ReadonlySet<string>;
  /** Versions that splits name, as they would be deployed; absent = none. */
  named?: readonly WantedVersion[];
  /** Deployments that have the endpoint's own traffic now; asked for with `named` alone. */
  routed?: ReadonlySet<string>;
  /** Of a progressive endpoint that is not stopped: who shares its traffic. */
  traffic?: TrafficInput;
  /** Not retired ones. */
  deployments: readonly KnownDeployment[];
  /** Why routers cannot serve a deployment that servers hold (its processing did not load there), by deployment. */
  problems: ReadonlyMap<string, string>;
}

/** What is to be written. Doing it again on the world it leads to changes nothing. */
export interface EndpointPlan {
  create: (WantedVersion & { id: string } & StateDecision)[];
  states: ({ id: string; version: number } & StateDecision)[];
  places: Places;
  /** Of a progressive endpoint: what is said of its traffic from now on. */
  traffic: TrafficPlan | null;
  /** Null: no route any more. */
  route: Route | null;
  status: EndpointStatus;
}

type Seen = KnownDeployment & { placements: Placement[]; seen: StateDecision; problem: boolean };
/** `named`: only splits want it. */
type Sighted = Seen & { wanted: boolean; named: boolean };

/** One pass: states from what servers say, then which deployments there should be, where, and what routers are told. */
export function planEndpoint(world: EndpointWorld, newId: () => string): EndpointPlan {
  const looked = world.deployments.map((deployment) => look(deployment, world));
  const current = looked.map(({ id, version, digest, state, seen }) => ({
    id,
    version,
    digest,
    state: seen.state,
    drains: state === 'draining',
  }));
  const refused = world.refused ?? new Set();
  const traffic = world.traffic ? shareTraffic(world, world.traffic, current) : null;
  const wishes = traffic?.wanted ?? world.wanted;
  // A progressive endpoint is served as long as anybody serves; else as many serve as the rule has versions.
  const least = traffic ? Math.min(1, wishes.length) : slotsOf(world);
  const digests = new Set(wishes.map(({ digest }) => digest));
  const extra = (world.named ?? []).filter(({ digest }) => !digests.has(digest) && !refused.has(digest));
  const named = new Set(extra.map(({ digest }) => digest));
  const plan = planDeployments(wishes, current, { least, refused, named, routed: world.routed });
  const missing = new Set([...plan.create, ...extra].map(({ digest }) => digest));
  for (const { digest } of current) missing.delete(digest);
  const fresh = [...world.wanted, ...(world.traffic?.stored ?? []), ...extra]
    .filter(({ digest }) => missing.delete(digest))
    .map((wish) => ({ ...wish, id: newId() }));
  const known: Sighted[] = looked.map((deployment) => ({
    ...deployment,
    wanted: digests.has(deployment.digest),
    named: named.has(deployment.digest) && !plan.spare.includes(deployment.id),
  }));
  const draining = new Set(plan.drain);
  const staying = known.filter(({ id }) => !draining.has(id));
  const places = planPlaces(world, [...staying, ...fresh], draining);

  const after = (deployment: Sighted): StateDecision => {
    if (draining.has(deployment.id)) return { state: 'draining', reason: null };
    const switched = places.switched.find((one) => one.deployment === deployment.id);
    if (switched && deployment.seen.state === 'failed') return { state: 'loading', reason: switched.words };
    if (deployment.seen.state !== 'placing') return deployment.seen;
    return { state: 'placing', reason: places.short.get(deployment.id) ?? null };
  };
  const create = fresh.map((wish) => ({ ...wish, ...firstState(wish, places.short.get(wish.id)) }));
  const routable = staying
    .filter(({ seen, problem }) => seen.state === 'ready' || problem)
    .map((deployment) => ({
      ...deployment,
      body: deployment.body!,
      unusable: deployment.problem,
      placements: without(deployment.placements, places.leave),
    }));
  const sights = [
    ...staying.map((deployment) => ({ ...deployment, ...after(deployment) })),
    ...create.map((deployment) => ({ ...deployment, wanted: digests.has(deployment.digest) })),
  ];
  return {
    create,
    states: known
      .map((deployment) => ({ before: deployment, id: deployment.id, ...after(deployment) }))
      .filter(({ before, state, reason }) => before.state !== state || before.reason !== reason)
      .map(({ before, id, state, reason }) => ({ id, version: before.version, state, reason })),
    places,
    traffic,
    ...show(world, routable, sights, traffic, places.short),
  };
}

/** How many versions the rule would have if none were refused. */
const slotsOf = ({ spec, wanted, refusals = [] }: EndpointWorld) =>
  Math.min(wanted.length + refusals.length, Math.max(wanted.length, spec?.model.maxVersions ?? defaultMaxVersions));

const shareTraffic = (
  { wanted, refusals = [], refused = new Set() }: EndpointWorld,
  { force, stored, routed }: TrafficInput,
  known: readonly { id: string; version: number; digest: string; state: DeploymentState }[],
): TrafficPlan => planTraffic({ force, rule: wanted, refusals, stored, routed, refused, known });

function look(deployment: KnownDeployment, world: EndpointWorld): Seen {
  const placements = ofDeployment(world, deployment.id);
  const seen = see(deployment, placements, world);
  const words = world.problems.get(deployment.id);
  const problem = words !== undefined && seen.state === 'ready';
  return { ...deployment, placements, problem, seen: problem ? { state: 'failed', reason: words } : seen };
}

/** What drains can serve again as long as a live server of the pool still holds it. */
function see(
  { id, body, state, reason }: KnownDeployment,
  placements: readonly Placement[],
  world: EndpointWorld,
): StateDecision {
  const { servers, deployments, spec, holdings = [] } = world;
  if (body === null) return { state: 'failed', reason };
  if (isModelless(body)) return { state: 'ready', reason: null };
  const returns = ({ proved, presence, server }: Placement) =>
    proved &&
    presence === 'live' &&
    (servers.some(({ id }) => id === server) || holdings.some((one) => one.server === server));
  if (state === 'draining' && placements.some((placement) => placement.state === 'leaving' && returns(placement)))
    return { state: 'ready', reason: null };
  const covered = deployments.some(
    (other) =>
      other.id !== id && other.state === 'ready' && servingPlacements(ofDeployment(world, other.id)).length > 0,
  );
  return decideState(state, placements, { minReplicas: spec?.fleet.minReplicas ?? 1, covered });
}

const ofDeployment = ({ placements }: EndpointWorld, id: string) =>
  placements.filter(({ deployment }) => deployment === id);

function firstState({ body, fault }: WantedVersion, short: string | undefined): StateDecision {
  if (body === null) return { state: 'failed', reason: fault };
  return { state: short === undefined ? 'pending' : 'placing', reason: short ?? null };
}

const samePair = (a: Pair) => (b: Pair) => a.deployment === b.deployment && a.server === b.server;
const without = (placements: readonly Placement[], leave: readonly Pair[]) =>
  placements.filter((placement) => !leave.some(samePair(placement)));

function show(
  { spec, generation, wanted, refusals = [], modelExists }: EndpointWorld,
  routable: readonly RoutableDeployment[],
  deployments: readonly (DeploymentSight & { id: string; body: DeploymentBody | null })[],
  traffic: TrafficPlan | null,
  short: ReadonlyMap<string, string>,
): Pick<EndpointPlan, 'route' | 'status'> {
  if (spec === null) return { route: null, status: removedStatus(generation) };
  const route = buildRoute(spec, routable, traffic?.force);
  const unusable = new Set(routable.filter((one) => one.unusable).map(({ id }) => id));
  const answering = route.targets.filter(({ deployment, named }) => !named && !unusable.has(deployment));
  const shares = new Map(route.arms.map(({ deployment, share }) => [deployment, share]));
  const serving = traffic ? answering.filter(({ deployment }) => shares.has(deployment)) : answering;
  const shortId = deployments.find(({ id, wanted: is }) => is && short.has(id))?.id;
  const facts = {
    spec,
    generation,
    serving: [...new Set(serving.map(({ version }) => version))],
    wanted: traffic ? (traffic.wish.newest ? [traffic.wish.newest.version] : []) : wanted.map(({ version }) => version),
    refusals,
    deployments: deployments.map((one) => ({ ...one, ...moduleOf(one), share: shares.get(one.id) ?? 0 })),
    short: shortId === undefined ? undefined : short.get(shortId),
    modelExists,
  };
  return { route, status: decideStatus(facts, traffic ? trafficVerdict(facts, traffic) : undefined) };
}

function moduleOf({ body }: { body: DeploymentBody | null }): Pick<DeploymentSight, 'module'> {
  const module = body?.processing.module;
  return module ? { module: `${module.name}@${module.number}` } : {};
}

const removedStatus = (generation: number): EndpointStatus => ({
  phase: 'blocked',
  reason: 'removed',
  message: 'removed',
  generationSeen: generation,
  servingVersions: [],
  nextVersion: null,
});
