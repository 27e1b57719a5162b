import type { EngineSpec } from '@perch/contracts';

export interface FieldFault {
  path: string;
  message: string;
}

type Rule = [path: string, broken: (engine: EngineSpec) => boolean, message: string];

const onlyFor = (engine: EngineSpec, ...platforms: string[]) => {
  const wanted = engine.formatPriority ?? (engine.platform === undefined ? [] : [engine.platform]);
  return wanted.length > 0 && !wanted.some((platform) => platforms.includes(platform));
};
const levels = (engine: EngineSpec) => engine.dynamicBatching?.priorityLevels ?? 0;
const policies = (engine: EngineSpec) => [
  engine.dynamicBatching?.queuePolicy,
  ...Object.values(engine.dynamicBatching?.priorityQueuePolicies ?? {}),
];
const unbatched = (engine: EngineSpec) =>
  engine.config === undefined && !(engine.maxBatchSize && engine.maxBatchSize > 0);

/** Settings that exclude one another, whatever the version holds: what the model server would refuse, said at once. */
const rules: readonly Rule[] = [
  ['engine.platform', (e) => e.platform === 'custom' && Object.keys(e).length > 1, 'custom has no model (a processing module does all the work), so other engine settings have no meaning'],
  ['engine.formatPriority', (e) => e.platform !== undefined && e.formatPriority !== undefined, 'give either platform or formatPriority'],
  ['engine.formatPriority', (e) => new Set(e.formatPriority).size !== (e.formatPriority?.length ?? 0), 'names a format twice'],
  ['engine.formatPriority', (e) => e.formatPriority?.includes('ensemble') ?? false, 'an ensemble is no format of a model'],
  ['engine.sequenceBatching', (e) => e.sequenceBatching !== undefined && e.dynamicBatching !== undefined, 'excludes engine.dynamicBatching'],
  ['engine.responseCache', (e) => e.responseCache === true && e.sequenceBatching !== undefined, 'excludes engine.sequenceBatching'],
  ['engine.responseCache', (e) => e.responseCache === true && e.decoupled === true, 'excludes engine.decoupled'],
  ['engine.dynamicBatching.preserveOrdering', (e) => e.dynamicBatching?.preserveOrdering === true && levels(e) > 1, 'allows one priority level at most'],
  ['engine.dynamicBatching.preserveOrdering', (e) => e.dynamicBatching?.preserveOrdering === true && policies(e).some((policy) => policy?.timeoutAction === 'delay'), 'excludes timeoutAction delay'],
  ['engine.dynamicBatching.queuePolicy', (e) => e.dynamicBatching?.maxQueueSize !== undefined && e.dynamicBatching.queuePolicy?.maxQueueSize !== undefined, 'has maxQueueSize, and so has dynamicBatching; give one of them'],
  ['engine.dynamicBatching.defaultPriorityLevel', (e) => (e.dynamicBatching?.defaultPriorityLevel ?? 0) > levels(e), 'is above priorityLevels'],
  ['engine.dynamicBatching.defaultPriorityLevel', (e) => levels(e) > 0 && e.dynamicBatching?.defaultPriorityLevel === undefined, 'wants a level from 1 to priorityLevels'],
  ['engine.dynamicBatching.priorityQueuePolicies', (e) => Object.keys(e.dynamicBatching?.priorityQueuePolicies ?? {}).some((level) => Number(level) > levels(e)), 'names a level above priorityLevels'],
  ['engine.sequenceBatching.oldest.preferredSizes', (e) => (e.sequenceBatching?.oldest?.preferredSizes ?? []).some((size) => size > (e.maxBatchSize ?? size)), 'has a size above engine.maxBatchSize'],
  ['engine.instances', (e) => e.instances?.some((group) => group.kind === 'model' && group.gpus !== undefined) ?? false, 'kind model takes no gpus'],
  ['engine.instances', (e) => e.instances?.some((group) => group.kind === 'cpu' && group.gpus !== undefined) ?? false, 'kind cpu takes no gpus'],
  ['engine.instances', (e) => e.instances?.every((group) => group.passive) ?? false, 'every group is passive, so nothing would run'],
  ['engine.instances', (e) => onlyFor(e, 'tensorrt_plan', 'tensorrt') && (e.instances?.some((group) => group.profile || group.secondaryDevices) ?? false), 'profile and secondaryDevices are for TensorRT'],
  ['engine.tensorrt', (e) => onlyFor(e, 'tensorrt_plan', 'tensorrt') && e.tensorrt !== undefined, 'is for platform tensorrt_plan'],
  ['engine.ccModelFilenames', (e) => onlyFor(e, 'tensorrt_plan', 'tensorrt') && e.ccModelFilenames !== undefined, 'is for platform tensorrt_plan'],
  ['engine.inputs', (e) => unbatched(e) && (e.inputs?.some((tensor) => tensor.raggedBatch) ?? false), 'raggedBatch wants engine.maxBatchSize above 0'],
  ['engine.warmup', (e) => e.platform === 'ensemble' && e.warmup !== undefined, 'an ensemble takes none'],
  ['engine.optimization', (e) => e.platform === 'ensemble' && (e.optimization ?? e.executionAccelerators) !== undefined, 'an ensemble takes none'],
  ['engine.warmup', (e) => new Set(e.warmup?.map(({ name }) => name)).size !== (e.warmup?.length ?? 0), 'names a request twice'],
  ['engine.warmup', (e) => e.warmup?.some(({ batchSize }) => (batchSize ?? 0) > Math.max(e.maxBatchSize ?? batchSize ?? 0, 1)) ?? false, 'has a batchSize above engine.maxBatchSize'],
]; // biome-ignore format: a table

export const engineContradictions = (engine: EngineSpec): FieldFault[] =>
  rules.filter(([, broken]) => broken(engine)).map(([path, , message]) => ({ path, message }));
