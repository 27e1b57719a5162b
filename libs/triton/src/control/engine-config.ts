import type { EngineTensor, InstanceGroup, QueuePolicy, ResolvedEngine } from '@perch/contracts';
import {
  type ConfigDynamicBatching,
  type ConfigInstanceGroup,
  type ConfigQueuePolicy,
  type ConfigTensor,
  configTypeOf,
  type ModelConfig,
} from './model-config.ts';
import { optimizationOf } from './optimization-config.ts';
import { compact, sequenceBatchingOf, warmupOf } from './scheduling-config.ts';

const kinds = { auto: 'KIND_AUTO', cpu: 'KIND_CPU', gpu: 'KIND_GPU', model: 'KIND_MODEL' } as const;

/** Words that Triton takes as a `platform`; any other is the name of a back-end. */
const platforms = new Set([
  'onnxruntime_onnx', 'tensorrt_plan', 'pytorch_libtorch', 'torch_aoti', 'tensorflow_savedmodel', 'tensorflow_graphdef',
  'ensemble',
]); // biome-ignore format: one row reads better

const tensorOf = ({ name, type, dims, optional, reshape, ...rest }: EngineTensor): ConfigTensor =>
  compact({
    name,
    data_type: configTypeOf(type),
    format: rest.format && `FORMAT_${rest.format.toUpperCase()}`,
    dims,
    reshape: reshape && { shape: reshape },
    is_shape_tensor: rest.shapeTensor || undefined,
    allow_ragged_batch: rest.raggedBatch || undefined,
    optional: optional || undefined,
    label_filename: rest.labelFile,
  });

const groupOf = (group: InstanceGroup): ConfigInstanceGroup =>
  compact({
    name: group.name,
    count: group.count,
    kind: kinds[group.kind],
    gpus: group.gpus,
    secondary_devices: group.secondaryDevices?.map(({ id }) => ({ kind: 'KIND_NVDLA', device_id: id })),
    profile: group.profile,
    passive: group.passive || undefined,
    host_policy: group.hostPolicy,
    rate_limiter: group.rateLimiter && {
      resources: (group.rateLimiter.resources ?? []).map(({ name, count, global }) =>
        compact({ name, global: global || undefined, count }),
      ),
      ...compact({ priority: group.rateLimiter.priority }),
    },
  });

const policyOf = (policy: QueuePolicy): ConfigQueuePolicy =>
  compact({
    timeout_action: policy.timeoutAction?.toUpperCase(),
    default_timeout_microseconds: policy.defaultTimeoutUs,
    allow_timeout_override: policy.allowTimeoutOverride,
    max_queue_size: policy.maxQueueSize,
  });

function batchingOf(batching: NonNullable<ResolvedEngine['dynamicBatching']>): ConfigDynamicBatching {
  const { maxQueueSize, queuePolicy, priorityQueuePolicies } = batching;
  const everyone = maxQueueSize === undefined && !queuePolicy ? undefined : policyOf({ maxQueueSize, ...queuePolicy });
  const byLevel = Object.entries(priorityQueuePolicies ?? {}).map(([level, policy]) => [level, policyOf(policy)]);
  return compact({
    preferred_batch_size: batching.preferredSizes,
    max_queue_delay_microseconds: batching.maxQueueDelayUs,
    preserve_ordering: batching.preserveOrdering || undefined,
    priority_levels: batching.priorityLevels,
    default_priority_level: batching.defaultPriorityLevel,
    default_queue_policy: everyone,
    priority_queue_policy: byLevel.length > 0 ? Object.fromEntries(byLevel) : undefined,
  });
}

/** Our settings as Triton's configuration; what they do not say is left out. */
export function configOf(name: string, engine: ResolvedEngine): ModelConfig {
  const parameters = Object.entries(engine.parameters).map(([key, value]) => [key, { string_value: value }] as const);
  const isPlatform = platforms.has(engine.platform);
  return compact({
    name,
    // Triton derives the back-end of a platform itself; both together would only be a chance to disagree.
    platform: isPlatform ? engine.platform : undefined,
    backend: isPlatform ? undefined : engine.backend || engine.platform,
    max_batch_size: engine.maxBatchSize,
    input: engine.inputs.length > 0 ? engine.inputs.map(tensorOf) : undefined,
    output: engine.outputs.length > 0 ? engine.outputs.map(tensorOf) : undefined,
    instance_group: engine.instances.length > 0 ? engine.instances.map(groupOf) : undefined,
    dynamic_batching: engine.dynamicBatching ? batchingOf(engine.dynamicBatching) : undefined,
    sequence_batching: engine.sequenceBatching && sequenceBatchingOf(engine.sequenceBatching),
    optimization: optimizationOf(engine.optimization, engine.executionAccelerators),
    default_model_filename: engine.defaultModelFilename || undefined,
    cc_model_filenames: engine.ccModelFilenames,
    parameters: parameters.length > 0 ? Object.fromEntries(parameters) : undefined,
    model_warmup: engine.warmup?.map(warmupOf),
    model_transaction_policy: engine.decoupled === undefined ? undefined : { decoupled: engine.decoupled },
    response_cache: engine.responseCache === undefined ? undefined : { enable: engine.responseCache },
  });
}
