import type { EndpointSpec } from '@perch/contracts';
import { type NamedEndpoint, nameConflict } from '../resolve/name.plan.ts';
import { engineFaults } from './pipeline.plan.ts';
import type { NamingPipeline } from './pipeline.store.ts';

/** A pipeline has no versions, so nothing hides one of them. */
const noVersion = 0;
const asNamed = (name: string): NamedEndpoint => ({ name, onlyVersion: noVersion, kind: 'pipeline' });

/** Why a pipeline may not have this name: it is somebody's, or `/serve/E/7` would no longer mean version 7 of `E`. */
export function pipelineNameConflict(
  name: string,
  endpoints: readonly NamedEndpoint[],
  splits: readonly { name: string }[],
): string | undefined {
  const others = [...endpoints, ...splits.map((split) => ({ name: split.name, onlyVersion: null, kind: 'split' }))];
  const same = others.find((other) => other.name === name);
  if (same) return `${same.kind ?? 'endpoint'} ${name} has this name; remove it first, or choose another name`;
  return nameConflict(asNamed(name), others);
}

/** The same seen from an endpoint or a split that is added or changed. */
export function pipelinesInTheWay(wanted: NamedEndpoint, pipelines: readonly string[]): string | undefined {
  if (pipelines.includes(wanted.name))
    return `pipeline ${wanted.name} has this name; remove it first, or choose another name`;
  return nameConflict(wanted, pipelines.map(asNamed));
}

const nodesAsking = ({ spec }: NamingPipeline, name: string) =>
  Object.entries(spec.nodes).filter(([, node]) => node.endpoint === name);

/** Who asks an endpoint, in words: `pipeline vision/rank (node detect)`. */
export const pipelineUsersText = (name: string, pipelines: readonly NamingPipeline[]): string =>
  pipelines
    .map((one) => `pipeline ${one.name} (node ${nodesAsking(one, name).map(([node]) => node).join(', ')})`) // biome-ignore format: one row reads better
    .join(', ');

/** Why an endpoint may not become so: a pipeline counts on instances or a device that it would no longer have. */
export function pipelineWishBroken(after: EndpointSpec, pipelines: readonly NamingPipeline[]): string | undefined {
  for (const one of pipelines)
    for (const [name, node] of nodesAsking(one, after.name)) {
      const [fault] = engineFaults(node, after);
      if (fault) return `pipeline ${one.name}, node ${name}: ${fault.field} ${fault.message.split(';')[0]}; change the pipeline first`; // biome-ignore format: one row reads better
    }
  return undefined;
}
