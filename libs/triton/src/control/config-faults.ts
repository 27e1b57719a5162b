import { AppError } from '@perch/contracts';
import { ensembleFaults } from './ensemble-faults.ts';
import type { ModelConfig } from './model-config.ts';
import { batchingFaults, type ConfigSequenceBatching, sequenceFaults } from './schedule-faults.ts';
import { batchTensorFaults, duplicates, tensorFaults } from './tensor-faults.ts';
import { warmupFaults } from './warmup-faults.ts';

const backends: Readonly<Record<string, string>> = {
  tensorrt_plan: 'tensorrt',
  onnxruntime_onnx: 'onnxruntime',
  pytorch_libtorch: 'pytorch',
  torch_aoti: 'pytorch',
  tensorflow_graphdef: 'tensorflow',
  tensorflow_savedmodel: 'tensorflow',
};

function platformFaults({ platform, backend }: ModelConfig): string[] {
  if (!platform || platform === 'ensemble') return [];
  const wanted = backends[platform];
  if (wanted === undefined)
    return [
      `platform '${platform}' is none of ${Object.keys(backends).join(', ')}, ensemble; name a back-end with backend`,
    ];
  return backend && backend !== wanted ? [`platform '${platform}' has the backend '${wanted}', not '${backend}'`] : [];
}

function instanceFaults(config: ModelConfig): string[] {
  const isTensorrt = config.platform === 'tensorrt_plan' || config.backend === 'tensorrt';
  const tells = Boolean(config.platform || config.backend);
  return (config.instance_group ?? []).flatMap((group, index) => {
    const thing = `instance_group ${group.name ? `'${group.name}'` : index + 1}`;
    const faults: string[] = [];
    if ((group.count ?? 0) < 0) faults.push(`${thing}: count is negative`);
    if ((group.kind === 'KIND_MODEL' || group.kind === 'KIND_CPU') && (group.gpus ?? []).length > 0)
      faults.push(`${thing}: ${group.kind} takes no gpus`);
    if ((group.gpus ?? []).some((gpu) => gpu < 0)) faults.push(`${thing}: a GPU has a number from 0`);
    if (tells && !isTensorrt && (group.profile ?? []).length > 0)
      faults.push(`${thing}: profile is for TensorRT alone`);
    return faults;
  });
}

/** Tags become label names with an underscore in front; another character ends the whole server, seen on 2.51. */
const tagFaults = ({ metric_tags: tags }: ModelConfig): string[] =>
  Object.keys(tags ?? {})
    .filter((tag) => !/^[A-Za-z0-9_]*$/.test(tag))
    .map((tag) => `metric_tags '${tag}': a tag is made of letters, digits and _`);

const policyFaults = ({ version_policy: policy }: ModelConfig): string[] => {
  if (policy?.latest && (policy.latest.num_versions ?? 0) < 1)
    return ['version_policy latest wants num_versions of at least 1'];
  if (policy?.specific && (policy.specific.versions ?? []).length === 0)
    return ['version_policy specific names no version'];
  return [];
};

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
  if (config.sequence_batching)
    faults.push(...sequenceFaults(config.sequence_batching as ConfigSequenceBatching, maxBatchSize));
  if (config.platform === 'ensemble' || config.ensemble_scheduling) faults.push(...ensembleFaults(config));
  faults.push(...platformFaults(config), ...instanceFaults(config), ...batchTensorFaults(config));
  faults.push(...warmupFaults(config), ...tagFaults(config), ...policyFaults(config));
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
