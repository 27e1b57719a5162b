import type { EndpointSpec, EngineTensor, Route, RouteTarget, TensorSpec } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import { servingPlacements } from '../deployment.decide.ts';
import { routedModel } from '../external-endpoint.plan.ts';
import type { DeploymentBody } from '../resolve/engine.plan.ts';

/** A ready deployment that is not draining, with its servers. */
export interface RoutableDeployment {
  id: string;
  version: number;
  tritonModel: string;
  body: DeploymentBody;
  /** The rule wants it now (else it serves in the place of one that is not ready yet). */
  wanted: boolean;
  /** Routers say that they cannot serve it: it stays in the table, so that they go on trying, and gets no traffic. */
  unusable: boolean;
  placements: readonly Placement[];
}

type Choice = RouteTarget & Pick<RoutableDeployment, 'wanted' | 'unusable'>;

const withBatch = (tensors: readonly EngineTensor[], maxBatchSize: number): TensorSpec[] =>
  tensors.map(({ name, type, dims, optional }) => ({
    name,
    datatype: type,
    shape: maxBatchSize > 0 ? [-1, ...dims] : dims,
    ...(optional ? { optional } : {}),
  }));

function targetOf({ id, version, tritonModel, body, placements }: RoutableDeployment): RouteTarget | undefined {
  const servers = servingPlacements(placements).map(({ server }) => server);
  if (servers.length === 0) return undefined;
  const told = placements.find(({ proved, observed }) => proved && observed?.inputs && observed.outputs)?.observed;
  const names = new Map(placements.map((placement) => [placement.server, placement.tritonModel]));
  const others = servers.filter((server) => names.get(server) !== tritonModel).sort();
  const placed = body.variants.find((variant) => variant.tritonModel === names.get(servers[0]!)) ?? body.variants[0]!;
  const { engine } = placed.model;
  const maxBatchSize = told?.maxBatchSize ?? engine.maxBatchSize;
  return {
    deployment: id,
    version,
    ...routedModel(tritonModel),
    ...(others.length > 0 ? { models: Object.fromEntries(others.map((server) => [server, names.get(server)!])) } : {}),
    servers: [...servers].sort(),
    maxBatchSize,
    inputs: told?.inputs ?? withBatch(engine.inputs, maxBatchSize),
    outputs: told?.outputs ?? withBatch(engine.outputs, maxBatchSize),
    processing: body.processing,
    files: body.processingFiles,
  };
}

/** Relative weights by target, newest first; all of them zero means: nothing that has weight can serve. */
function weigh(traffic: EndpointSpec['traffic'], targets: readonly Choice[]): number[] {
  const usable = targets.filter(({ unusable }) => !unusable);
  if (traffic.mode === 'weighted') {
    const { weights, newestFirst } = traffic;
    return targets.map((target) =>
      target.unusable ? 0 : (weights?.[String(target.version)] ?? newestFirst?.[usable.indexOf(target)] ?? 0),
    );
  }
  const newest = usable.find(({ wanted }) => wanted);
  return targets.map((target) => (target === newest ? 1 : 0));
}

/** In which order several deployments of one version are considered for its one target. */
const byWorth = (a: RoutableDeployment, b: RoutableDeployment) =>
  Number(a.unusable) - Number(b.unusable) || Number(b.wanted) - Number(a.wanted) || (a.id < b.id ? -1 : 1);

/**
 * The route of one endpoint from its ready deployments. Each version has one target: the one the spec wants, else the
 * one that serves in its place. Weights count ready versions only and are brought to a sum of 1; when nothing that has
 * weight can serve, the newest that can takes all, because an answer from it is better than none.
 */
export function buildRoute(spec: EndpointSpec, deployments: readonly RoutableDeployment[]): Route {
  const chosen = new Map<number, Choice>();
  for (const deployment of [...deployments].sort(byWorth)) {
    const { wanted, unusable } = deployment;
    const target = targetOf(deployment);
    if (target && !chosen.has(deployment.version)) chosen.set(deployment.version, { ...target, wanted, unusable });
  }
  const targets = [...chosen.values()].sort((a, b) => b.version - a.version);
  const given = weigh(spec.traffic, targets);
  const sum = given.reduce((total, weight) => total + weight, 0);
  const last = Math.max(
    0,
    targets.findIndex(({ unusable }) => !unusable),
  );
  const weights = sum > 0 ? given : targets.map((_, place) => (place === last ? 1 : 0));
  const total = sum > 0 ? sum : 1;
  return {
    arms: targets
      .map(({ deployment }, place) => ({ deployment, share: weights[place]! / total }))
      .filter(({ share }) => share > 0),
    targets: targets.map(({ wanted: _wanted, unusable: _unusable, ...target }) => target),
    access: spec.access.inference,
    timeoutMs: spec.limits.timeoutMs,
    maxBodyBytes: spec.limits.maxBodyBytes,
    idempotent: spec.idempotent,
    ...(spec.stopped ? { stopped: true } : {}),
  };
}
