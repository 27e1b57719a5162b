import type { DesiredModel, Route, RouteTarget } from '@perch/contracts';

/**
 * Documents of schema 2 as a reader of schema 1 can follow them. Each member is turned by itself, so that a patch comes to
 * the same as the whole document. What the older reader would misread is left out: it would send requests to names that
 * are not there, or load a model without what it needs.
 */
export function downgradeMember(section: string, value: unknown): unknown {
  if (value === null) return null;
  if (section === 'endpoints') return downgradeRoute(value as Route);
  if (section === 'models') return downgradeModel(value as DesiredModel);
  return value;
}

/**
 * Null: held back. It cannot be loaded in an order that the reader does not know, nor with settings that it would leave
 * out (or refuse the whole document for).
 */
export const downgradeModel = (model: DesiredModel): DesiredModel | null =>
  (model.needs ?? []).length > 0 || !isKnownEngine(model.engine) ? null : model;

const known = {
  engine: ['platform', 'backend', 'maxBatchSize', 'dynamicBatching', 'instances', 'inputs', 'outputs', 'parameters', 'defaultModelFilename', 'config'],
  batching: ['preferredSizes', 'maxQueueDelayUs', 'maxQueueSize', 'preserveOrdering'],
  group: ['kind', 'count', 'gpus', 'profile'],
  tensor: ['name', 'type', 'dims', 'optional', 'reshape'],
}; // biome-ignore format: a table
const holdsOnly = (keys: readonly string[]) => (value: object) => Object.keys(value).every((key) => keys.includes(key));

/** Whether schema 1 had all that these settings say. */
const isKnownEngine = (engine: DesiredModel['engine']): boolean =>
  holdsOnly(known.engine)(engine) &&
  holdsOnly(known.batching)(engine.dynamicBatching ?? {}) &&
  (engine.instances ?? []).every(holdsOnly(known.group)) &&
  [...(engine.inputs ?? []), ...(engine.outputs ?? [])].every(holdsOnly(known.tensor));

/** Servers with another model name, targets with a version to ask for, with a module or without a model are left out; the shares add to 1 again. */
export function downgradeRoute(route: Route): Route {
  const targets = route.targets.flatMap((target) => downgradeTarget(target) ?? []);
  if (targets.length === route.targets.length) return { ...route, targets };
  const left = new Set(targets.map(({ deployment }) => deployment));
  const arms = route.arms.filter(({ deployment }) => left.has(deployment));
  const sum = arms.reduce((total, { share }) => total + share, 0);
  if (sum > 0) return { ...route, targets, arms: arms.map((arm) => ({ ...arm, share: arm.share / sum })) };
  // Nothing that has a share is left: the newest of what is, for an answer is better than none.
  const [newest] = [...targets].sort((a, b) => b.version - a.version);
  return { ...route, targets, arms: newest ? [{ deployment: newest.deployment, share: 1 }] : [] };
}

function downgradeTarget({ models, ...target }: RouteTarget): RouteTarget | undefined {
  if (target.tritonVersion !== undefined || target.processing.module || target.modelless) return undefined;
  const servers = target.servers.filter((id) => (models?.[id] ?? target.tritonModel) === target.tritonModel);
  return servers.length > 0 ? { ...target, servers } : undefined;
}
