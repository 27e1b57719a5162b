import {
  type EndpointSpec,
  type FieldFault,
  type PipelineNode,
  type PipelineSpec,
  type ProcessingModuleRecord,
  parseWith,
  pipelineSpec,
  type Route,
} from '@perch/contracts';
import { typeFaults } from './pipeline-types.plan.ts';

/** A spec as the user wrote it, with every default filled in. Throws `invalid` naming the field at fault. */
export const parsePipeline = (input: unknown): PipelineSpec => parseWith(pipelineSpec, input, 'pipeline spec');

/** What a pipeline's nodes may refer to. */
export interface PipelineWorld {
  endpoints: ReadonlyMap<string, EndpointSpec>;
  /** Routes of those endpoints that have one. */
  routes: ReadonlyMap<string, Route>;
  /** Names that are made together with it: not there yet, and not looked into. */
  coming: ReadonlySet<string>;
  splits: ReadonlySet<string>;
  /** Pipelines that it leads to, with what each of them asks. */
  pipelines: ReadonlyMap<string, readonly string[]>;
  /** By node. */
  modules: ReadonlyMap<string, ProcessingModuleRecord>;
}

/** What the nodes ask, each once, in order. */
export const membersOf = ({ nodes }: Pick<PipelineSpec, 'nodes'>): string[] =>
  [...new Set(Object.values(nodes).flatMap(({ endpoint }) => endpoint ?? []))].sort();

/** The way from a pipeline back to `name`, or undefined. */
function wayBack(
  from: string,
  name: string,
  pipelines: PipelineWorld['pipelines'],
  seen: Set<string>,
): string[] | undefined {
  if (from === name) return [from];
  if (seen.has(from)) return undefined;
  seen.add(from);
  for (const member of pipelines.get(from) ?? []) {
    const way = wayBack(member, name, pipelines, seen);
    if (way) return [from, ...way];
  }
  return undefined;
}

function endpointFault(name: string, wanted: string, world: PipelineWorld): string | undefined {
  const { endpoints, coming, splits, pipelines } = world;
  const way = wayBack(wanted, name, pipelines, new Set());
  if (way) return `a cycle of pipelines: ${[name, ...way].join(' -> ')}`;
  if (endpoints.has(wanted) || coming.has(wanted) || splits.has(wanted) || pipelines.has(wanted)) return undefined;
  return `there is no endpoint ${wanted}; add it first`;
}

function versionFault({ version, endpoint }: PipelineNode, world: PipelineWorld): string | undefined {
  const only = world.endpoints.get(endpoint ?? '')?.model.version;
  if (version === undefined) return undefined;
  if (world.pipelines.has(endpoint!)) return `${endpoint} is a pipeline and has no versions to ask for`;
  if (only !== undefined && only !== version) return `endpoint ${endpoint} serves version ${only} alone`;
  const serves = [...new Set(world.routes.get(endpoint!)?.targets.map((target) => target.version) ?? [])];
  if (serves.length === 0 || serves.includes(version)) return undefined;
  const has = serves.sort((a, b) => b - a).join(', ');
  return `endpoint ${endpoint} serves ${has} now: keep version ${version} loaded with its maxVersions, or by a split that names it`;
}

type Groups = NonNullable<EndpointSpec['engine']['instances']>;

/** Instances that an endpoint's settings give each server; 1 where they say nothing. */
const instancesOf = (groups: Groups | undefined): number => (groups ?? [{ count: 1 }]).reduce((sum, { count }) => sum + count, 0); // biome-ignore format: one row reads better

export const instancesText = (groups: Groups | undefined): string | null =>
  groups ? groups.map(({ count, kind }) => `${count} ${kind}`).join(', ') : null;

/**
 * What a node asks of its endpoint's instances and the endpoint's settings do not give: an endpoint may have other users,
 * so a pipeline never changes it, and never lets its own wish go unheard.
 */
export function engineFaults(
  node: PipelineNode,
  { name, engine, model }: EndpointSpec,
): { field: string; message: string }[] {
  const { instances, device } = node;
  const faults: { field: string; message: string }[] = [];
  if (instances === undefined && device === undefined) return faults;
  const has = instancesText(engine.instances) ?? 'what the model server chooses';
  const wanted = `${device ?? engine.instances?.[0]?.kind ?? 'cpu'}:${instances ?? instancesOf(engine.instances)}`;
  const todo = model.source
    ? 'an external Triton has its own settings: change it there, and take the wish out here'
    : `change it with "perch endpoint update ${name} --instances ${wanted}"`;
  if (
    instances !== undefined &&
    (engine.config !== undefined || model.source !== undefined || instancesOf(engine.instances) < instances)
  )
    faults.push({ field: 'instances', message: `wants ${instances}, and endpoint ${name} has ${has}; ${todo}` });
  const kinds = (engine.instances ?? []).map(({ kind }) => kind);
  if (device !== undefined && (kinds.length === 0 || kinds.some((kind) => kind !== device)))
    faults.push({ field: 'device', message: `wants ${device}, and endpoint ${name} has ${has}; ${todo}` });
  return faults;
}

function moduleFault({ module }: PipelineNode, record: ProcessingModuleRecord | undefined): string | undefined {
  if (!record || record.facts.hooks.includes('process')) return undefined;
  return `${module} has no process hook: it needs a model, so bind it to an endpoint and name that here`;
}

function nodeFaults(spec: PipelineSpec, name: string, node: PipelineNode, world: PipelineWorld): FieldFault[] {
  const path = `nodes.${name}`;
  if (node.endpoint === undefined) {
    const message = moduleFault(node, world.modules.get(name));
    return message ? [{ path: `${path}.module`, message }] : [];
  }
  const unknown = endpointFault(spec.name, node.endpoint, world);
  if (unknown) return [{ path: `${path}.endpoint`, message: unknown }];
  const version = versionFault(node, world);
  const endpoint = world.endpoints.get(node.endpoint);
  const others = ['instances', 'device'] as const;
  const engine = endpoint
    ? engineFaults(node, endpoint)
    : others
        .filter((field) => node[field] !== undefined && !world.coming.has(node.endpoint!))
        .map((field) => ({ field, message: `${node.endpoint} is no endpoint of its own: ask it of the endpoints behind it` })); // biome-ignore format: one row reads better
  return [
    ...(version ? [{ path: `${path}.version`, message: version }] : []),
    ...engine.map(({ field, message }) => ({ path: `${path}.${field}`, message })),
  ];
}

/** All that speaks against a pipeline although it is right by itself. */
export function pipelineWorldFaults(spec: PipelineSpec, world: PipelineWorld): FieldFault[] {
  const faults = Object.entries(spec.nodes).flatMap(([name, node]) => nodeFaults(spec, name, node, world));
  return faults.length > 0 ? faults : typeFaults(spec, world);
}
