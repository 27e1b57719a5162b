import type { Deployment, Endpoint, Route } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import type { DeploymentRow } from './deployment.store.ts';
import type { EndpointRow } from './endpoint.store.ts';

/** What people see of an endpoint. */
export function viewEndpoint(
  row: EndpointRow,
  deployments: readonly DeploymentRow[],
  placements: readonly Placement[],
  route: Route | null,
): Endpoint {
  return {
    name: row.name,
    generation: row.generation,
    spec: row.spec!,
    status: row.status,
    deployments: deployments.map((deployment) => viewDeployment(deployment, placements, route)),
    updatedAt: row.updated_at.toISOString(),
    updatedBy: row.updated_by,
  };
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
    servers: placements
      .filter(({ deployment }) => deployment === row.id)
      .map(({ serverName, observed, presence }) => ({
        server: serverName,
        state: presence === 'live' ? (observed?.state ?? 'not told yet') : presence,
        reason: observed?.reason ?? null,
      })),
    weightPercent: Math.round(share * 10_000) / 100,
  };
}
