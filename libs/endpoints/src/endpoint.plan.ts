import type { DeploymentState, EndpointStatus, Route } from '@perch/contracts';
import type { Pair, Placement } from '@perch/fleet';
import { decideState, type StateDecision, servingPlacements } from './deployment.decide.ts';
import { planDeployments } from './deployment.plan.ts';
import { type Places, type PlacesWorld, planPlaces } from './places.plan.ts';
import type { DeploymentBody } from './resolve/engine.plan.ts';
import { buildRoute, type RoutableDeployment } from './route/route.plan.ts';
import { type DeploymentSight, decideStatus } from './status.plan.ts';

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

export interface KnownDeployment {
  id: string;
  version: number;
  digest: string;
  tritonModel: string;
  body: DeploymentBody | null;
  state: DeploymentState;
  reason: string | null;
}

/** All that one pass over an endpoint looks at. */
export interface EndpointWorld extends PlacesWorld {
  generation: number;
  modelExists: boolean;
  wanted: readonly WantedVersion[];
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
  /** Null: no route any more. */
  route: Route | null;
  status: EndpointStatus;
}

type Sighted = KnownDeployment & { placements: Placement[]; wanted: boolean; seen: StateDecision; problem: boolean };

/** One pass: states from what servers say, then which deployments there should be, where, and what routers are told. */
export function planEndpoint(world: EndpointWorld, newId: () => string): EndpointPlan {
  const known = world.deployments.map((deployment) => look(deployment, world));
  const plan = planDeployments(
    world.wanted,
    known.map(({ id, version, digest, seen }) => ({ id, version, digest, state: seen.state })),
  );
  const missing = new Set(plan.create.map(({ digest }) => digest));
  const fresh = world.wanted.filter(({ digest }) => missing.has(digest)).map((wish) => ({ ...wish, id: newId() }));
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
    ...create.map((deployment) => ({ ...deployment, wanted: true })),
  ];
  return {
    create,
    states: known
      .map((deployment) => ({ before: deployment, id: deployment.id, ...after(deployment) }))
      .filter(({ before, state, reason }) => before.state !== state || before.reason !== reason)
      .map(({ before, id, state, reason }) => ({ id, version: before.version, state, reason })),
    places,
    ...show(world, routable, sights, sights.find(({ id, wanted }) => wanted && places.short.has(id))?.id, places.short),
  };
}

function look(deployment: KnownDeployment, world: EndpointWorld): Sighted {
  const placements = ofDeployment(world, deployment.id);
  const wanted = world.wanted.some(({ digest }) => digest === deployment.digest);
  const seen = see(deployment, placements, world);
  const words = world.problems.get(deployment.id);
  const problem = words !== undefined && seen.state === 'ready';
  return { ...deployment, placements, wanted, problem, seen: problem ? { state: 'failed', reason: words } : seen };
}

/** What drains can serve again as long as a live server of the pool still holds it. */
function see(
  { id, body, state, reason }: KnownDeployment,
  placements: readonly Placement[],
  world: EndpointWorld,
): StateDecision {
  const { servers, deployments, spec, holdings = [] } = world;
  if (body === null) return { state: 'failed', reason };
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

const firstState = ({ body, fault }: WantedVersion, short: string | undefined): StateDecision =>
  body === null
    ? { state: 'failed', reason: fault }
    : { state: short === undefined ? 'pending' : 'placing', reason: short ?? null };

const samePair = (a: Pair) => (b: Pair) => a.deployment === b.deployment && a.server === b.server;
const without = (placements: readonly Placement[], leave: readonly Pair[]) =>
  placements.filter((placement) => !leave.some(samePair(placement)));

function show(
  { spec, generation, wanted, modelExists }: EndpointWorld,
  routable: readonly RoutableDeployment[],
  deployments: readonly DeploymentSight[],
  shortId: string | undefined,
  short: ReadonlyMap<string, string>,
): Pick<EndpointPlan, 'route' | 'status'> {
  if (spec === null) return { route: null, status: removedStatus(generation) };
  const route = buildRoute(spec, routable);
  const versions = wanted.map(({ version }) => version);
  const unusable = new Set(routable.filter((one) => one.unusable).map(({ id }) => id));
  const serving = route.targets.filter(({ deployment }) => !unusable.has(deployment)).map(({ version }) => version);
  const why = shortId === undefined ? undefined : short.get(shortId);
  return {
    route,
    status: decideStatus({ spec, generation, serving, wanted: versions, deployments, short: why, modelExists }),
  };
}

const removedStatus = (generation: number): EndpointStatus => ({
  phase: 'blocked',
  reason: 'removed',
  message: 'removed',
  generationSeen: generation,
  servingVersions: [],
  nextVersion: null,
});
