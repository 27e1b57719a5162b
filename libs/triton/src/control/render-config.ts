import { AppError, type EngineTensor, type InstanceGroup, type ResolvedEngine } from '@perch/contracts';
import protobuf from 'protobufjs';
import { configFaults } from './config-faults.ts';
import {
  type ConfigDynamicBatching,
  type ConfigInstanceGroup,
  type ConfigTensor,
  configTypeOf,
  type ModelConfig,
  modelConfigType,
  parseModelConfig,
  writeModelConfig,
} from './model-config.ts';
import type { PlainMessage } from './text-parser.ts';

const kinds = { auto: 'KIND_AUTO', cpu: 'KIND_CPU', gpu: 'KIND_GPU', model: 'KIND_MODEL' } as const;

/** Words that Triton takes as a `platform`; any other is the name of a back-end. */
const platforms = new Set([
  'onnxruntime_onnx', 'tensorrt_plan', 'pytorch_libtorch', 'torch_aoti', 'tensorflow_savedmodel', 'tensorflow_graphdef',
  'ensemble',
]); // biome-ignore format: one row reads better

const tensorOf = (tensor: EngineTensor): ConfigTensor => ({
  name: tensor.name,
  data_type: configTypeOf(tensor.type),
  dims: tensor.dims,
  ...(tensor.optional ? { optional: true } : {}),
  ...(tensor.reshape ? { reshape: { shape: tensor.reshape } } : {}),
});

const groupOf = (group: InstanceGroup): ConfigInstanceGroup => ({
  count: group.count,
  kind: kinds[group.kind],
  ...(group.gpus ? { gpus: group.gpus } : {}),
  ...(group.profile ? { profile: group.profile } : {}),
});

function batchingOf(batching: NonNullable<ResolvedEngine['dynamicBatching']>): ConfigDynamicBatching {
  const { preferredSizes, maxQueueDelayUs, maxQueueSize, preserveOrdering } = batching;
  return {
    ...(preferredSizes ? { preferred_batch_size: preferredSizes } : {}),
    ...(maxQueueDelayUs === undefined ? {} : { max_queue_delay_microseconds: maxQueueDelayUs }),
    ...(preserveOrdering ? { preserve_ordering: true } : {}),
    ...(maxQueueSize === undefined ? {} : { default_queue_policy: { max_queue_size: maxQueueSize } }),
  };
}

/** Our settings as Triton's configuration. */
function configOf(name: string, engine: ResolvedEngine): ModelConfig {
  const parameters = Object.entries(engine.parameters).map(([key, value]) => [key, { string_value: value }] as const);
  return {
    name,
    // Triton derives the back-end of a platform itself; both together would only be a chance to disagree.
    ...(platforms.has(engine.platform)
      ? { platform: engine.platform }
      : { backend: engine.backend || engine.platform }),
    max_batch_size: engine.maxBatchSize,
    input: engine.inputs.map(tensorOf),
    output: engine.outputs.map(tensorOf),
    ...(engine.instances.length > 0 ? { instance_group: engine.instances.map(groupOf) } : {}),
    ...(engine.dynamicBatching ? { dynamic_batching: batchingOf(engine.dynamicBatching) } : {}),
    ...(engine.defaultModelFilename ? { default_model_filename: engine.defaultModelFilename } : {}),
    ...(parameters.length > 0 ? { parameters: Object.fromEntries(parameters) } : {}),
  };
}

/** Singular messages are merged field by field, maps by key; lists and scalars of `over` replace those below. */
function merge(type: protobuf.Type, below: PlainMessage, over: PlainMessage): PlainMessage {
  const merged: PlainMessage = { ...below };
  for (const [name, value] of Object.entries(over)) {
    const field = type.fields[name]!.resolve();
    for (const other of field.partOf?.oneof ?? []) if (other !== name) delete merged[other];
    const old = merged[name];
    if (field.map && old) merged[name] = { ...(old as object), ...(value as object) };
    else if (field.resolvedType instanceof protobuf.Type && !field.repeated && !field.map && old)
      merged[name] = merge(field.resolvedType, old as PlainMessage, value as PlainMessage);
    else merged[name] = value;
  }
  return merged;
}

function userConfig(name: string, text: string): ModelConfig {
  const user = parseModelConfig(text, `the config text of ${name}`);
  delete user.name;
  if (user.version_policy)
    throw new AppError(
      'invalid',
      `the config text of ${name} has a version_policy: a server holds each version as a model of its own; say how many versions are served with maxVersions`,
      { details: { field: 'config' } },
    );
  return user;
}

/** A server without GPUs takes no group of kind AUTO, and none at all where the back-end is a Python one. */
function placeInstances(config: ModelConfig, gpus: number): void {
  if (gpus > 0 || config.platform === 'ensemble' || config.ensemble_scheduling) return;
  const groups = config.instance_group?.length ? config.instance_group : [{ count: 1 }];
  config.instance_group = groups.map((group: ConfigInstanceGroup) =>
    (group.kind ?? 'KIND_AUTO') === 'KIND_AUTO' ? { ...group, kind: 'KIND_CPU' } : group,
  );
}

/**
 * The whole configuration of a Triton model: our settings, then the user's own text over them (it wins except for the
 * name). Throws `invalid` where Triton would refuse it, naming each fault.
 */
export function mergeModelConfig(name: string, engine: ResolvedEngine, server: { gpus: number }): ModelConfig {
  const ours = configOf(name, engine);
  let config: ModelConfig = ours;
  if (engine.config?.trim()) {
    const user = userConfig(name, engine.config);
    if (user.platform || user.backend) {
      delete ours.platform;
      delete ours.backend;
    }
    config = { ...merge(modelConfigType, ours, user), name } as ModelConfig;
  }
  placeInstances(config, server.gpus);
  const faults = configFaults(config);
  if (server.gpus === 0 && config.instance_group?.some(({ kind }) => kind === 'KIND_GPU'))
    faults.push('instance_group wants a GPU and the server has none');
  if (faults.length > 0)
    throw new AppError('invalid', `configuration of ${name}: ${faults.join('; ')}`, { details: { faults } });
  return config;
}

/** The text of `config.pbtxt` for a Triton model on a server; see `mergeModelConfig`. */
export const renderModelConfig = (name: string, engine: ResolvedEngine, server: { gpus: number }): string =>
  writeModelConfig(mergeModelConfig(name, engine, server));
