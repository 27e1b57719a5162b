import type { EndpointSpec, Route, RouteTarget } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import { servingPlacements } from '../deployment.decide.ts';
import { routedModel } from '../external-endpoint.plan.ts';
import type { DeploymentBody } from '../resolve/engine.plan.ts';
import { isModelless } from '../resolve/modelless.plan.ts';
import { type ArmChoice, shareForced } from '../traffic/arms.plan.ts';
import { signatureOf } from '../traffic/signature.plan.ts';
import type { TrafficForce } from '../traffic/traffic.plan.ts';
import { shareOut } from './share.plan.ts';

/** A ready deployment that is not draining, with its servers. */
export interface RoutableDeployment {
  id: string;
  version: number;
  digest: string;
  tritonModel: string;
  body: DeploymentBody;
  /** The rule wants it now (else it serves in the place of one that is not ready yet). */
  wanted: boolean;
  /** Wanted because a split names this version, and not by the rule. Absent = no. */
  named?: boolean;
  /** Routers say that they cannot serve it: it stays in the table, so that they go on trying, and gets no traffic. */
  unusable: boolean;
  placements: readonly Placement[];
}

type Choice = RouteTarget & Pick<RoutableDeployment, 'digest' | 'wanted' | 'unusable'>;

function targetOf({ id, version, tritonModel, body, placements, named }: RoutableDeployment): RouteTarget | undefined {
  if (isModelless(body))
    return {
      deployment: id,
      ...(named ? { named: true as const } : {}),
      version,
      tritonModel,
      servers: [],
      modelless: true,
      ...signatureOf(body, []),
      processing: body.processing,
      files: body.processingFiles,
    };
  const servers = servingPlacements(placements).map(({ server }) => server);
  if (servers.length === 0) return undefined;
  const names = new Map(placements.map((placement) => [placement.server, placement.tritonModel]));
  const others = servers.filter((server) => names.get(server) !== tritonModel).sort();
  return {
    deployment: id,
    ...(named ? { named: true as const } : {}),
    version,
    ...routedModel(tritonModel),
    ...(others.length > 0 ? { models: Object.fromEntries(others.map((server) => [server, names.get(server)!])) } : {}),
    servers: [...servers].sort(),
    ...signatureOf(body, placements, names.get(servers[0]!)),
    processing: body.processing,
    files: body.processingFiles,
  };
}

/** In which order several deployments of one version are considered for its one target. */
const byWorth = (a: RoutableDeployment, b: RoutableDeployment) =>
  Number(a.unusable) - Number(b.unusable) || Number(b.wanted) - Number(a.wanted) || (a.id < b.id ? -1 : 1);

/**
 * The route of one endpoint from its ready deployments. Each version has one target: the one the spec wants, else the
 * one that serves in its place; what routers cannot load stays beside it, without a share. The weight of a version that cannot serve goes to the heaviest that can; when nothing
 * that has weight can serve, the newest that can takes all, because an answer from it is better than none. `force`: what
 * a rollout says of a progressive endpoint; then each deployment has a target.
 */
export function buildRoute(
  spec: EndpointSpec,
  deployments: readonly RoutableDeployment[],
  force?: TrafficForce,
): Route {
  const { choices, idle } = force
    ? { choices: everyTarget(deployments, force), idle: [] }
    : oneOfEachVersion(deployments);
  return {
    ...(force ? shareForced(spec, force, choices) : shareBySpec(spec, choices)),
    targets: [...choices, ...idle].map(
      ({ digest: _digest, wanted: _wanted, unusable: _unusable, ...target }) => target,
    ),
    access: spec.access.inference,
    ...(spec.metrics ? { metrics: spec.metrics } : {}),
    timeoutMs: spec.limits.timeoutMs,
    maxBodyBytes: spec.limits.maxBodyBytes,
    idempotent: spec.idempotent,
    ...(spec.stopped ? { stopped: true } : {}),
  };
}

function choiceOf(deployment: RoutableDeployment): Choice | undefined {
  const { digest, wanted, named, unusable } = deployment;
  const target = targetOf(deployment);
  return target && { ...target, digest, wanted: wanted && !named, unusable };
}

/** `idle`: what routers cannot serve of a version that another one serves; it stays so that they go on trying. */
function oneOfEachVersion(deployments: readonly RoutableDeployment[]): { choices: Choice[]; idle: Choice[] } {
  const chosen = new Map<number, Choice>();
  const idle: Choice[] = [];
  for (const deployment of [...deployments].sort(byWorth)) {
    const choice = choiceOf(deployment);
    if (!choice) continue;
    if (!chosen.has(deployment.version)) chosen.set(deployment.version, choice);
    else if (deployment.unusable) idle.push(choice);
  }
  return { choices: [...chosen.values()].sort((a, b) => b.version - a.version), idle };
}

/** Newest version first; whoever asks for a version of which there are two meets the stable one. */
function everyTarget(deployments: readonly RoutableDeployment[], { stable }: TrafficForce): Choice[] {
  const order = (a: RoutableDeployment, b: RoutableDeployment) =>
    b.version - a.version || Number(b.digest === stable) - Number(a.digest === stable) || byWorth(a, b);
  return [...deployments].sort(order).flatMap((deployment) => choiceOf(deployment) ?? []);
}

function shareBySpec({ name, traffic }: EndpointSpec, targets: readonly Choice[]): ArmChoice {
  const shares = shareOut(traffic, targets);
  const { sticky } = traffic;
  return {
    arms: targets
      .map(({ deployment }, place) => ({ deployment, share: shares[place]! }))
      .filter(({ share }) => share > 0),
    ...(sticky ? { sticky: { header: sticky.header, salt: name } } : {}),
  };
}
