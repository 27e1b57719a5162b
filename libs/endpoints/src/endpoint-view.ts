import type { BoundProcessing, Deployment, Endpoint, Route } from '@perch/contracts';
import type { Placement, PlacementSight } from '@perch/fleet';
import type { DeploymentRow } from './deployment.store.ts';
import type { EndpointRow } from './endpoint.store.ts';
import { isModelless } from './resolve/modelless.plan.ts';
import type { TrafficForce } from './traffic/traffic.plan.ts';
import { serverWait } from './why/server-wait.decide.ts';

/** What people see of an endpoint. */
export function viewEndpoint(
  row: EndpointRow,
  deployments: readonly DeploymentRow[],
  placements: readonly Placement[],
  route: Route | null,
  force?: TrafficForce,
): Endpoint {
  return {
    name: row.name,
    generation: row.generation,
    spec: row.spec!,
    status: row.status,
    deployments: deployments.map((deployment) => ({
      ...viewDeployment(deployment, placements, route),
      ...(force ? roleOf(deployment.digest, force) : {}),
    })),
    ...(force && force.held !== null ? { updatesHeldBy: force.held } : {}),
    updatedAt: row.updated_at.toISOString(),
    updatedBy: row.updated_by,
  };
}

function roleOf(digest: string, { stable, candidate, keep }: TrafficForce): Pick<Deployment, 'role'> {
  if (digest === stable) return { role: 'stable' };
  if (digest === candidate) return { role: 'candidate' };
  return keep.includes(digest) ? { role: 'kept' } : {};
}

function viewDeployment(row: DeploymentRow, placements: readonly Placement[], route: Route | null): Deployment {
  const share = route?.arms.find(({ deployment }) => deployment === row.id)?.share ?? 0;
  return {
    id: row.id,
    version: row.version,
    tritonModel: row.triton_model,
    digest: row.digest,
    state: row.state,
    reason: row.reason,
    since: row.since.toISOString(),
    ...(row.body ? { processing: viewProcessing(row.body.processing) } : {}),
    ...(isModelless(row.body) ? { modelless: true as const } : {}),
    servers: placements
      .filter(({ deployment }) => deployment === row.id)
      .map(({ serverName, observed, presence, earlier = [] }) => ({
        server: serverName,
        state: presence === 'live' ? (observed?.state ?? 'not told yet') : presence,
        reason: observed?.reason ?? null,
        ...(earlier.length > 0 ? { earlier } : {}),
      })),
    weightPercent: Math.round(share * 10_000) / 100,
  };
}

const viewProcessing = ({ builtin, module, isolation }: BoundProcessing): Deployment['processing'] =>
  module ? { module: `${module.name}@${module.number}`, isolation } : { builtin };

/** The same with all that is known of each server, for one endpoint. `obstacleOf`: why what leaves is still loaded. */
export function detailEndpoint(
  endpoint: Endpoint,
  sights: readonly PlacementSight[],
  obstacleOf: (sight: PlacementSight) => string | undefined,
): Endpoint {
  const deployments = endpoint.deployments.map((deployment) => ({
    ...deployment,
    servers: sights
      .filter((sight) => sight.deployment === deployment.id)
      .map((sight) => viewSight(sight, obstacleOf(sight))),
  }));
  return { ...endpoint, deployments };
}

function viewSight(sight: PlacementSight, obstacle: string | undefined): Deployment['servers'][number] {
  const { server, observed, memory, tritonModel, earlier = [] } = sight;
  const wait = serverWait(sight);
  const leaving = sight.state !== 'active';
  const gpuBytes = Object.values(memory?.gpuBytes ?? {}).reduce((sum, bytes) => sum + bytes, 0);
  return {
    server: server.name,
    state: server.presence === 'live' ? (observed?.state ?? 'not told yet') : server.presence,
    reason: observed?.reason ?? null,
    tritonModel,
    ...(earlier.length > 0 ? { earlier } : {}),
    wanted: leaving ? 'leaving' : 'held',
    since: observed?.since ?? sight.placedAt,
    memoryBytes: memory ? (gpuBytes > 0 ? gpuBytes : memory.ramBytes) : null,
    waitsFor: leaving ? (obstacle ?? 'the agent to unload it') : wait.waitsFor,
  };
}
