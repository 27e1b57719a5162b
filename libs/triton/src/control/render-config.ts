import { AppError, type ResolvedEngine } from '@perch/contracts';
import protobuf from 'protobufjs';
import { configFaults } from './config-faults.ts';
import { configOf } from './engine-config.ts';
import {
  type ConfigInstanceGroup,
  type ModelConfig,
  modelConfigType,
  parseModelConfig,
  writeModelConfig,
} from './model-config.ts';
import type { PlainMessage } from './text-parser.ts';

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

/** `over` wins; a platform or back-end of its own replaces both of those below. */
function mergeConfigs(below: ModelConfig, over: ModelConfig): ModelConfig {
  const base: ModelConfig = { ...below };
  if (over.platform || over.backend) {
    delete base.platform;
    delete base.backend;
  }
  return merge(modelConfigType, base, over) as ModelConfig;
}

/** What the settings leave to the text below them is not said by them: batching off, say, where nobody spoke of it. */
function ourConfig(name: string, engine: ResolvedEngine, below: ModelConfig | null): ModelConfig {
  const ours = configOf(name, engine);
  if (!below) return ours;
  // The version's own words for the same back-end stay.
  if ([below.backend, below.platform].includes(ours.platform ?? ours.backend)) {
    delete ours.platform;
    delete ours.backend;
  }
  return ours;
}

/**
 * The whole configuration of a Triton model: the version's own text where it is below, our settings over it, then the
 * text that wins over both (except for the name). Throws `invalid` where Triton would refuse it, naming each fault.
 */
export function mergeModelConfig(name: string, engine: ResolvedEngine, server: { gpus: number }): ModelConfig {
  const below = engine.configBelow?.trim() ? userConfig(name, engine.configBelow) : null;
  const ours = ourConfig(name, engine, below);
  let config = below ? mergeConfigs(below, ours) : ours;
  if (engine.config?.trim()) config = mergeConfigs(config, userConfig(name, engine.config));
  config = { ...config, name };
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
