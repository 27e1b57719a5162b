import { AppError } from '@perch/contracts';
import type { ConfigDynamicBatching, ConfigTensor, ModelConfig } from './model-config.ts';

const product = (sizes: readonly number[]): number => sizes.filter((size) => size !== -1).reduce((a, b) => a * b, 1);
const wildcards = (sizes: readonly number[]): number => sizes.filter((size) => size === -1).length;
const isBadSize = (size: number): boolean => size !== -1 && size < 1;

function tensorFaults(kind: string, tensor: ConfigTensor, index: number, maxBatchSize: number): string[] {
  const faults: string[] = [];
  const thing = tensor.name ? `${kind} '${tensor.name}'` : `${kind} ${index + 1}`;
  const dims = tensor.dims ?? [];
  if (!tensor.name) faults.push(`${thing} has no name`);
  if (tensor.data_type === undefined || tensor.data_type === 'TYPE_INVALID' || typeof tensor.data_type === 'number')
    faults.push(`${thing} has no data_type`);
  if (dims.length === 0) faults.push(`${thing} has no dims; give at least one`);
  if (dims.some(isBadSize)) faults.push(`${thing}: a size in dims [${dims.join(', ')}] is neither -1 nor at least 1`);
  const shape = tensor.reshape ? (tensor.reshape.shape ?? []) : undefined;
  if (!shape || dims.length === 0) return faults;
  if (shape.some(isBadSize))
    faults.push(`${thing}: a size in reshape [${shape.join(', ')}] is neither -1 nor at least 1`);
  if (shape.length === 0 && maxBatchSize === 0) faults.push(`${thing}: an empty reshape wants a max_batch_size over 0`);
  if (wildcards(shape) !== wildcards(dims))
    faults.push(`${thing}: reshape [${shape.join(', ')}] must hold as many -1 as dims [${dims.join(', ')}]`);
  else if (product(shape) !== product(dims))
    faults.push(`${thing}: reshape [${shape.join(', ')}] and dims [${dims.join(', ')}] differ in their element count`);
  return faults;
}

const duplicates = (kind: string, tensors: readonly ConfigTensor[]): string[] =>
  tensors
    .map(({ name }) => name)
    .filter((name, index, names) => name && names.indexOf(name) !== index)
    .map((name) => `${kind} '${name}' is given twice`);

function batchingFaults(batching: ConfigDynamicBatching, maxBatchSize: number): string[] {
  const faults: string[] = [];
  for (const size of batching.preferred_batch_size ?? [])
    if (size < 1 || size > maxBatchSize)
      faults.push(`preferred_batch_size ${size} is not between 1 and max_batch_size ${maxBatchSize}`);
  if (!batching.preserve_ordering) return faults;
  if ((batching.priority_levels ?? 0) > 1) faults.push('preserve_ordering allows one priority level at most');
  const policies = [batching.default_queue_policy, ...Object.values(batching.priority_queue_policy ?? {})];
  if (policies.some((policy) => policy?.timeout_action === 'DELAY'))
    faults.push('preserve_ordering and timeout_action DELAY exclude one another');
  return faults;
}

function ensembleFaults(config: ModelConfig): string[] {
  const faults: string[] = [];
  if (!config.ensemble_scheduling) return ["platform 'ensemble' wants ensemble_scheduling"];
  if ((config.ensemble_scheduling.step ?? []).length === 0) faults.push('ensemble_scheduling wants at least one step');
  for (const field of ['instance_group', 'optimization', 'model_warmup'])
    if (config[field] !== undefined) faults.push(`an ensemble takes no ${field}`);
  return faults;
}

function instanceFaults(config: ModelConfig): string[] {
  return (config.instance_group ?? []).flatMap((group, index) => {
    const faults: string[] = [];
    if ((group.count ?? 0) < 0) faults.push(`instance_group ${index + 1}: count is negative`);
    if (group.kind === 'KIND_MODEL' && (group.gpus ?? []).length > 0)
      faults.push(`instance_group ${index + 1}: KIND_MODEL takes no gpus`);
    return faults;
  });
}

/**
 * What Triton would refuse in a configuration, in words; empty when nothing is wrong. Inputs and outputs may be missing
 * (the back-end completes them).
 */
export function configFaults(config: ModelConfig): string[] {
  const maxBatchSize = config.max_batch_size ?? 0;
  const faults: string[] = [];
  if (maxBatchSize < 0) faults.push(`max_batch_size ${maxBatchSize} is negative`);
  for (const kind of ['input', 'output'] as const) {
    const tensors = config[kind] ?? [];
    faults.push(...tensors.flatMap((tensor, index) => tensorFaults(kind, tensor, index, maxBatchSize)));
    faults.push(...duplicates(kind, tensors));
  }
  if (config.dynamic_batching) faults.push(...batchingFaults(config.dynamic_batching, maxBatchSize));
  if (config.platform === 'ensemble' || config.ensemble_scheduling) faults.push(...ensembleFaults(config));
  faults.push(...instanceFaults(config));
  if (config.response_cache?.enable && config.sequence_batching)
    faults.push('response_cache and sequence_batching exclude one another');
  if (config.response_cache?.enable && config.model_transaction_policy?.decoupled)
    faults.push('response_cache and a decoupled model exclude one another');
  return faults;
}

/** Throws `invalid` that lists everything Triton would refuse; `thing` names the configuration. */
export function validateModelConfig(config: ModelConfig, thing = 'config.pbtxt'): void {
  const faults = configFaults(config);
  if (faults.length > 0) throw new AppError('invalid', `${thing}: ${faults.join('; ')}`, { details: { faults } });
}
