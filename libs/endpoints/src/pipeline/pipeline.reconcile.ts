import { digestOf, type Route } from '@perch/contracts';
import { routingTableDocument } from '@perch/fleet';
import type { Tx } from '@perch/platform/database';
import type { EndpointsStore } from '../endpoints.store.ts';
import type { ChangedRoute } from '../route/routing-table.plan.ts';
import type { PipelineDue } from './pipeline.store.ts';

/** The route of a pipeline: nothing of it but itself decides it. */
export function pipelineRoute({
  spec,
  generation,
  modules,
}: Pick<PipelineDue, 'spec' | 'generation' | 'modules'>): Route | null {
  if (!spec) return null;
  const { nodes, output, limits, access } = spec;
  return {
    arms: [],
    targets: [],
    access: access.inference,
    ...limits,
    idempotent: true,
    pipeline: { generation, nodes, output, modules },
  };
}

/** Pipelines that changed since their route was published. Costs one query without any. */
export async function duePipelines(
  tx: Tx,
  { pipelines, fleet }: EndpointsStore,
): Promise<{ due: PipelineDue[]; changed: ChangedRoute[] }> {
  const due = await pipelines.due(tx);
  if (due.length === 0) return { due, changed: [] };
  const names = due.map(({ name }) => name);
  const published = await fleet.documents.entriesOf(tx, routingTableDocument, 'endpoints', names);
  const before = new Map(published.map(({ key, digest }) => [key, digest]));
  const changed = due
    .filter(({ taken }) => !taken)
    .map((row): ChangedRoute => {
      const route = pipelineRoute(row);
      return { endpoint: row.name, route, digest: route && digestOf(route) };
    });
  return { due, changed: changed.filter(({ endpoint, digest }) => digest !== (before.get(endpoint) ?? null)) };
}
