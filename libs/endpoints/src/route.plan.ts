import type { EndpointSpec, EngineTensor, Route, RouteTarget, TensorSpec } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import { servingPlacements } from './deployment.decide.ts';
import type { DeploymentBody } from './engine.plan.ts';

/** A ready deployment that is not draining, with its servers. */
export interface RoutableDeployment {
  id: string;
  version: number;
  tritonModel: string;
  body: DeploymentBody;
  /** The rule wants it now (else it serves in the place of one that is not ready yet). */
  wanted: boolean;
  placements: readonly Placement[];
}

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
  const maxBatchSize = told?.maxBatchSize ?? body.engine.maxBatchSize;
  return {
    deployment: id,
    version,
    tritonModel,
    servers: [...servers].sort(),
    maxBatchSize,
    inputs: told?.inputs ?? withBatch(body.engine.inputs, maxBatchSize),
    outputs: told?.outputs ?? withBatch(body.engine.outputs, maxBatchSize),
    processing: body.processing,
    files: body.processingFiles,
  };
}

/** Relative weights by deployment, newest target first; all of them zero means: nothing that has weight can serve. */
function weigh(traffic: EndpointSpec['traffic'], targets: readonly (RouteTarget & { wanted: boolean })[]): number[] {
  if (traffic.mode === 'weighted')
    return targets.map(
      (target, place) => traffic.weights?.[String(target.version)] ?? traffic.newestFirst?.[place] ?? 0,
    );
  const newest = targets.find(({ wanted }) => wanted);
  return targets.map((target) => (target === newest ? 1 : 0));
}

/**
 * The route of one endpoint from its ready deployments. Each version has one target: the one the spec wants, else the
 * one that serves in its place. Weights count ready versions only and are brought to a sum of 1; when nothing that has
 * weight can serve, the newest that can takes all, because an answer from it is better than none.
 */
export function buildRoute(spec: EndpointSpec, deployments: readonly RoutableDeployment[]): Route {
  const chosen = new Map<number, RouteTarget & { wanted: boolean }>();
  for (const deployment of [...deployments].sort(
    (a, b) => Number(b.wanted) - Number(a.wanted) || (a.id < b.id ? -1 : 1),
  )) {
    const target = targetOf(deployment);
    if (target && !chosen.has(deployment.version))
      chosen.set(deployment.version, { ...target, wanted: deployment.wanted });
  }
  const targets = [...chosen.values()].sort((a, b) => b.version - a.version);
  const given = weigh(spec.traffic, targets);
  const sum = given.reduce((total, weight) => total + weight, 0);
  const weights = sum > 0 ? given : targets.map((_, place) => (place === 0 ? 1 : 0));
  const total = sum > 0 ? sum : 1;
  return {
    arms: targets
      .map(({ deployment }, place) => ({ deployment, share: weights[place]! / total }))
      .filter(({ share }) => share > 0),
    targets: targets.map(({ wanted: _, ...target }) => target),
    access: spec.access.inference,
    timeoutMs: spec.limits.timeoutMs,
    maxBodyBytes: spec.limits.maxBodyBytes,
    idempotent: spec.idempotent,
  };
}
