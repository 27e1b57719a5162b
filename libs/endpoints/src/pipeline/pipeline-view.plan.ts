import {
  type EndpointSpec,
  nodeLevels,
  nodeWaits,
  type Pipeline,
  type PipelineNode,
  type PipelineNodeSight,
  type PipelineSpec,
  type Route,
} from '@perch/contracts';
import { instancesText } from './pipeline.plan.ts';
import type { PipelineRow } from './pipeline.store.ts';

/** What is known of what nodes ask. */
export interface PipelineSurroundings {
  endpoints: ReadonlyMap<string, EndpointSpec>;
  /** As the table in force holds them, of splits and pipelines as well. */
  routes: ReadonlyMap<string, Route>;
  splits: ReadonlySet<string>;
  pipelines: ReadonlySet<string>;
  /** Names of servers by id. */
  servers: ReadonlyMap<string, string>;
}

const percent = (share: number) => Math.round(share * 10_000) / 100;

function versionsOf({ version }: PipelineNode, route: Route, servers: PipelineSurroundings['servers']) {
  const shares = new Map(route.arms.map(({ deployment, share }) => [deployment, share]));
  return route.targets
    .map((target) => ({
      version: target.version,
      sharePercent: version === undefined ? percent(shares.get(target.deployment) ?? 0) : target.version === version ? 100 : 0, // biome-ignore format: one row reads better
      servers: target.servers.map((id) => servers.get(id) ?? id).sort(),
    }))
    .filter(({ sharePercent }) => sharePercent > 0)
    .sort((a, b) => b.sharePercent - a.sharePercent || b.version - a.version);
}

function missingOf(
  node: PipelineNode,
  kind: PipelineNodeSight['kind'],
  route: Route | undefined,
  versions: number,
): string | null {
  if (!route) return `${kind} ${node.endpoint} serves nothing yet`;
  if (route.stopped) return `endpoint ${node.endpoint} is stopped`;
  if (kind === 'pipeline' || versions > 0) return null;
  return node.version === undefined
    ? `${kind} ${node.endpoint} serves nothing now`
    : `endpoint ${node.endpoint} does not serve version ${node.version} now`;
}

function sightOf(
  node: PipelineNode,
  place: Pick<PipelineNodeSight, 'node' | 'step' | 'waits'>,
  around: PipelineSurroundings,
): PipelineNodeSight {
  if (node.endpoint === undefined) {
    const isolation = node.isolation ?? 'worker';
    return { ...place, kind: 'module', name: node.module!, isolation, versions: [], instances: null, missing: null };
  }
  const { endpoint: name } = node;
  const kind = around.pipelines.has(name) ? 'pipeline' : around.endpoints.has(name) ? 'endpoint' : 'split';
  const route = around.routes.get(name);
  const versions = route ? versionsOf(node, route, around.servers) : [];
  return {
    ...place,
    kind,
    name,
    isolation: null,
    versions,
    instances: instancesText(around.endpoints.get(name)?.engine.instances),
    missing: missingOf(node, kind, route, versions.length),
  };
}

/** Each node in the order of the steps, with what runs it now. */
export function nodeSights(spec: PipelineSpec, around: PipelineSurroundings): PipelineNodeSight[] {
  const waits = nodeWaits(spec.nodes);
  return nodeLevels(waits).flatMap((names, at) =>
    names.map((node) => sightOf(spec.nodes[node]!, { node, step: at + 1, waits: [...waits.get(node)!] }, around)),
  );
}

/** `3 nodes in 2 steps: detect, embed; then rank`. */
export function shapeText({ nodes }: PipelineSpec): string {
  const levels = nodeLevels(nodeWaits(nodes));
  const count = Object.keys(nodes).length;
  const steps = levels.length === 1 ? '1 step' : `${levels.length} steps`;
  return `${count} node${count === 1 ? '' : 's'} in ${steps}: ${levels.map((names) => names.join(', ')).join('; then ')}`;
}

/** What people see of a pipeline. */
export function viewPipeline(row: PipelineRow & { spec: PipelineSpec }, around: PipelineSurroundings): Pipeline {
  const nodes = nodeSights(row.spec, around);
  const missing = nodes.filter((node) => node.missing !== null);
  const serves = around.routes.get(row.name)?.pipeline?.generation === row.generation;
  const message = missing.map(({ node, missing: why }) => `node ${node} cannot answer: ${why}`).join('; ');
  const waiting = serves ? shapeText(row.spec) : 'it is on its way into the routing table';
  return {
    name: row.name,
    generation: row.generation,
    spec: row.spec,
    nodes,
    message: message || waiting,
    updatedAt: row.updated_at.toISOString(),
    updatedBy: row.updated_by,
  };
}

/** What follows from a change, in sentences for a person. */
export function pipelineEffect(
  before: PipelineSpec | null,
  after: PipelineSpec,
  endpoints: ReadonlyMap<string, EndpointSpec>,
): string[] {
  const effect = [`runs ${shapeText(after)}`];
  for (const [name, { module }] of Object.entries(after.nodes)) {
    const was = before?.nodes[name]?.module;
    if (module && was !== module) effect.push(was ? `node ${name} runs module ${module} in place of ${was}` : `node ${name} runs module ${module}`); // biome-ignore format: one row reads better
  }
  const keyed = [...endpoints].filter(([, spec]) => spec.access.inference === 'key').map(([name]) => name);
  if (after.access.inference === 'public' && before?.access.inference !== 'public' && keyed.length > 0)
    effect.push(
      `anybody may call it without a key, also what wants one under its own name: ${keyed.sort().join(', ')}`,
    );
  return effect;
}
