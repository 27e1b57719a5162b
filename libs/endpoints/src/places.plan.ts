import type { EndpointSpec } from '@perch/contracts';
import {
  type Holding,
  type ModelFacts,
  type NewPlacement,
  neededName,
  noFacts,
  type Pair,
  type Placement,
  type PlacementPlan,
  type PlannedServer,
  planPlacement,
} from '@perch/fleet';
import { isHeld, planHeldPlaces } from './external-endpoint.plan.ts';
import type { DeploymentBody } from './resolve/engine.plan.ts';
import { isModelless } from './resolve/modelless.plan.ts';

/** What is looked at to say where an endpoint's deployments are to be. */
export interface PlacesWorld {
  name: string;
  /** Null: the endpoint was removed. */
  spec: EndpointSpec | null;
  placements: readonly Placement[];
  /** Of the endpoint's pool, without lost ones. */
  servers: readonly PlannedServer[];
  /** What is known of the models to be placed; left out: nothing, and the plan must be made again before it adds anything. */
  facts?: ModelFacts;
  /** What external Tritons hold of the model, for an endpoint that is served by them. */
  holdings?: readonly Holding[];
}

/** What is to be written of placements. Doing it again on the world it leads to changes nothing. */
export interface Places {
  place: NewPlacement[];
  leave: Pair[];
  yields: PlacementPlan['yields'];
  waits: (Pair & { waits: string | null })[];
  /** Another variant takes the place of one that failed for good; in words. */
  switched: (Pair & { from: string; to: string; words: string })[];
  /** Variants that failed for good where another one takes their place, or that are let go. */
  failures: { server: string; tritonModel: string; reason: string }[];
  /** Why a deployment has fewer servers than it wants, by deployment. */
  short: ReadonlyMap<string, string>;
}

/** Stable one, candidate and one more: so many deployments of a progressive endpoint may be loaded at once. */
const besideEachOther = 3;

/** `deployments`: those that are to be served; `draining`: those that are to go. */
export function planPlaces(
  world: PlacesWorld,
  deployments: readonly { id: string; body: DeploymentBody | null }[],
  draining: ReadonlySet<string>,
): Places {
  const { replicas, minReplicas = 1, labels } = world.spec?.fleet ?? { replicas: 0 };
  const { held, own } = sortDeployments(deployments);
  const spare = world.spec?.traffic.mode === 'progressive' ? Math.max(0, besideEachOther - own.length) : 0;
  const there = planHeldPlaces({ ...world, holdings: world.holdings ?? [] }, held);
  const plan = planPlacement(
    own.flatMap(({ id, body }) =>
      body ? [{ id, endpoint: world.name, replicas, minReplicas, labels, variants: body.variants, spare }] : [],
    ),
    world.servers,
    world.placements.map(toCurrent),
    world.facts ?? noFacts,
  );
  const going = world.placements.filter(({ deployment }) => draining.has(deployment));
  const left = [...plan.leave, ...there.leave, ...going.map(({ deployment, server }) => ({ deployment, server }))];
  const place = plan.add.map(({ deployment, server, variant, instead }) => ({
    deployment,
    server,
    endpoint: world.name,
    tritonModel: variant.tritonModel,
    needs: variant.needs.map((needed) => ({
      name: neededName(needed),
      tritonModel: needed.tritonModel,
      usedModel: needed.of ?? null,
    })),
    instead,
  }));
  return {
    place: [...place, ...there.place],
    leave: left.filter((pair) => !isLeaving(world, pair)),
    yields: plan.yields,
    switched: plan.add.flatMap((placing) => switchOf(world, placing)),
    waits: changedWaits(world, plan),
    failures: [
      ...plan.add.flatMap(({ server, instead }) =>
        instead ? [{ server, tritonModel: instead.tritonModel, reason: instead.reason }] : [],
      ),
      ...plan.leave.flatMap((pair) => failureOf(world, pair)),
    ],
    short: new Map([...plan.short, ...there.short]),
  };
}

/** What external Tritons hold is found, what has no model is nowhere, everything else is placed. */
function sortDeployments<T extends { id: string; body: DeploymentBody | null }>(deployments: readonly T[]) {
  const held: { id: string; tritonModel: string }[] = [];
  const own: T[] = [];
  for (const deployment of deployments) {
    const [variant] = deployment.body?.variants ?? [];
    const tritonModel = variant?.tritonModel ?? '';
    if (isModelless(deployment.body)) continue;
    if (isHeld(tritonModel)) held.push({ id: deployment.id, tritonModel });
    else own.push(deployment);
  }
  return { held, own };
}

const toCurrent = ({ deployment, server, tritonModel, state, observed, yields }: Placement) => ({
  deployment,
  server,
  tritonModel,
  ready: observed?.state === 'ready',
  failure: observed?.state === 'failed' ? (observed.reason ?? 'no reason was given') : null,
  leaving: state === 'leaving',
  yields: yields ?? false,
});

function switchOf({ servers }: PlacesWorld, { deployment, server, variant, instead }: PlacementPlan['add'][number]) {
  if (!instead) return [];
  const name = servers.find(({ id }) => id === server)?.name ?? server;
  const words = `server ${name}: ${instead.reason}; trying ${variant.model.engine.platform} (${variant.tritonModel})`;
  return [{ deployment, server, from: instead.tritonModel, to: variant.tritonModel, words }];
}

const samePair = (a: Pair) => (b: Pair) => a.deployment === b.deployment && a.server === b.server;

const isLeaving = ({ placements }: PlacesWorld, pair: Pair) =>
  placements.some((placement) => placement.state === 'leaving' && samePair(pair)(placement));

function failureOf({ placements }: PlacesWorld, pair: Pair): Places['failures'] {
  const failed = placements.find((one) => samePair(pair)(one) && one.observed?.state === 'failed');
  if (!failed) return [];
  const { server, tritonModel, observed } = failed;
  return [{ server, tritonModel, reason: observed?.reason ?? 'no reason was given' }];
}

/** Only what differs from what was written before. */
function changedWaits({ placements }: PlacesWorld, { waits }: PlacementPlan): Places['waits'] {
  return placements
    .map((placement) => {
      const { deployment, server } = placement;
      return {
        deployment,
        server,
        before: placement.waits ?? null,
        waits: waits.find(samePair(placement))?.waits ?? null,
      };
    })
    .filter(({ before, waits: now }) => before !== now)
    .map(({ deployment, server, waits: now }) => ({ deployment, server, waits: now }));
}
