import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AppError, innerMessage } from '@perch/contracts';
import type { ModelConfig } from '@perch/triton/control';
import { completeConfig, graphFault } from '../models/complete-config.ts';
import { ModelVersion } from '../models/model-version.ts';
import type { FailureReason } from '../models/version-statistics.ts';
import type { OpenSession, Session } from '../session/onnx-session.ts';

const backendOfPlatform: Record<string, string> = {
  onnxruntime_onnx: 'onnxruntime',
  tensorrt_plan: 'tensorrt',
  pytorch_libtorch: 'pytorch',
  torch_aoti: 'pytorch',
  tensorflow_savedmodel: 'tensorflow',
  tensorflow_graphdef: 'tensorflow',
};

/** Why this engine cannot serve a configuration at all; undefined when it can. */
export function unsupported(config: ModelConfig): string | undefined {
  const backend = config.backend || backendOfPlatform[config.platform ?? ''] || config.platform || 'onnxruntime';
  if (backend !== 'onnxruntime')
    return `unable to find backend library for backend '${backend}': this engine runs onnxruntime_onnx models on a CPU and nothing else`;
  if (config.sequence_batching) return 'sequence_batching is not offered by this engine';
  if (config.model_transaction_policy?.decoupled) return 'decoupled models are not offered by this engine';
  if (config.instance_group?.some(({ kind }) => kind === 'KIND_GPU'))
    return 'instance group specifies KIND_GPU and this engine has no GPU';
  return undefined;
}

function modelFile(folder: string, version: string, config: ModelConfig): string {
  const name = config.default_model_filename || 'model.onnx';
  const path = join(folder, name);
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'model.onnx') : path;
  if (!existsSync(file)) throw new Error(`there is no file '${name}' in ${version}/`);
  return file;
}

const instanceCount = (config: ModelConfig): number =>
  (config.instance_group ?? [])
    .filter((group) => !group['passive'])
    .reduce((sum, { count }) => sum + (count || 1), 0) || 1;

function threadsOf(config: ModelConfig, otherwise: number): number {
  const text = config.parameters?.['intra_op_thread_count']?.string_value;
  if (text === undefined || text === '' || text === '0') return otherwise;
  if (!/^\d+$/.test(text)) throw new Error(`parameter intra_op_thread_count wants a whole number, got '${text}'`);
  return Number(text);
}

export interface OpenVersionOptions {
  name: string;
  version: string;
  folder: string;
  config: ModelConfig;
  openSession: OpenSession;
  /** Threads of a session that names none. */
  threads: number;
  onFailure: (reason: FailureReason) => void;
}

/** Opens a version's sessions; throws `invalid` with the reason in Triton's form (`Internal: …`). */
export async function openVersion(options: OpenVersionOptions): Promise<ModelVersion> {
  const { name, version, openSession } = options;
  const refusal = unsupported(options.config);
  if (refusal) throw new AppError('invalid', `Invalid argument: ${refusal}`);
  const sessions: Session[] = [];
  try {
    const file = modelFile(options.folder, version, options.config);
    const threads = threadsOf(options.config, options.threads);
    const first = await openSession(file, { threads });
    sessions.push(first);
    const config = completeConfig(options.config, first);
    const fault = graphFault(config, first);
    if (fault) throw new Error(fault);
    while (sessions.length < instanceCount(config)) sessions.push(await openSession(file, { threads }));
    return new ModelVersion({ name, version, config, sessions, onFailure: options.onFailure });
  } catch (error) {
    await Promise.all(sessions.map((session) => session.close()));
    throw new AppError('invalid', `Internal: onnxruntime: ${innerMessage(error)}`, { cause: error });
  }
}
