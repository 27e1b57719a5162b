import type { DataType, TensorSpec } from '@perch/contracts';
import {
  callUnary,
  grpcFault,
  openChannel,
  plainOf,
  restrictedMetadata,
  serviceMethods,
  TritonFault,
} from '../wire/index.ts';
import type { ModelConfig } from './model-config.ts';

export interface TritonControlOptions {
  /** `host:port` of the gRPC port. */
  grpc: string;
  /** Deadline of every call that names none; milliseconds. */
  timeoutMs?: number;
  /** Deadline of a load that names none; a load lasts as long as the model's start. */
  loadTimeoutMs?: number;
  /** What restricted protocols want with every call: key and value as the server was started with. */
  headers?: Readonly<Record<string, string>>;
  /** Told after every call, for a metric: the call's name, `ok` or the kind of fault, and how long it took. */
  onCall?: (call: string, outcome: string, durationMs: number) => void;
}

export interface CallOptions {
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** A model that comes with the request instead of lying in the repository. */
export interface InlineModel {
  config: ModelConfig;
  /** By path below the model's folder: `1/model.onnx`. */
  files: ReadonlyMap<string, Uint8Array>;
}
export interface LoadOptions extends CallOptions {
  inline?: InlineModel;
}

export interface ServerMetadata {
  name: string;
  version: string;
  extensions: string[];
}

/** `''`: on disk and never loaded. */
export type IndexState = 'READY' | 'LOADING' | 'UNLOADING' | 'UNAVAILABLE' | 'UNKNOWN' | '';
export interface IndexEntry {
  name: string;
  version: string;
  state: IndexState;
  /** Triton's own words for UNAVAILABLE; `unloaded` after an unload. */
  reason: string;
}

export interface ModelMetadata {
  name: string;
  /** Versions that are ready now. */
  versions: string[];
  platform: string;
  /** Shapes hold the batch dimension where the model batches. */
  inputs: TensorSpec[];
  outputs: TensorSpec[];
}

export interface Duration {
  count: number;
  ns: number;
}
export interface ModelStatistics {
  name: string;
  version: string;
  /** Milliseconds since the epoch; 0: never. */
  lastInference: number;
  inferenceCount: number;
  executionCount: number;
  success: Duration;
  fail: Duration;
  queue: Duration;
  computeInput: Duration;
  computeInfer: Duration;
  computeOutput: Duration;
  batches: { batchSize: number; computeInput: Duration; computeInfer: Duration; computeOutput: Duration }[];
  memory: { type: string; id: number; sizeBytes: number }[];
}

/** What the agent does to one Triton. Every call has a deadline and fails with a `TritonFault`. */
export interface TritonControl {
  live(options?: CallOptions): Promise<boolean>;
  ready(options?: CallOptions): Promise<boolean>;
  serverMetadata(options?: CallOptions): Promise<ServerMetadata>;
  index(options?: CallOptions): Promise<IndexEntry[]>;
  /** Resolves when every version is ready; the deadline ends the call, not the load. */
  load(name: string, options?: LoadOptions): Promise<void>;
  /** Resolves at once; accepted requests are finished after it. */
  unload(name: string, options?: CallOptions): Promise<void>;
  modelReady(name: string, options?: CallOptions): Promise<boolean>;
  modelMetadata(name: string, options?: CallOptions): Promise<ModelMetadata>;
  modelConfig(name: string, options?: CallOptions): Promise<ModelConfig>;
  statistics(name?: string, options?: CallOptions): Promise<ModelStatistics[]>;
  close(): void;
}

type Plain = Record<string, never> & Record<string, unknown>;
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): Plain[] => (Array.isArray(value) ? value : []);
const count = (value: unknown): number => (typeof value === 'number' ? value : 0);
const duration = (value: unknown): Duration => {
  const { count: times, ns } = (value ?? {}) as Plain;
  return { count: count(times), ns: count(ns) };
};

const specOf = (tensor: Plain): TensorSpec => ({
  name: text(tensor['name']),
  datatype: text(tensor['datatype']) as DataType,
  shape: (tensor['shape'] as number[] | undefined) ?? [],
});

const statisticsOf = (stats: Plain): ModelStatistics => {
  const inference = (stats['inference_stats'] ?? {}) as Plain;
  return {
    name: text(stats['name']),
    version: text(stats['version']),
    lastInference: count(stats['last_inference']),
    inferenceCount: count(stats['inference_count']),
    executionCount: count(stats['execution_count']),
    success: duration(inference['success']),
    fail: duration(inference['fail']),
    queue: duration(inference['queue']),
    computeInput: duration(inference['compute_input']),
    computeInfer: duration(inference['compute_infer']),
    computeOutput: duration(inference['compute_output']),
    batches: list(stats['batch_stats']).map((batch) => ({
      batchSize: count(batch['batch_size']),
      computeInput: duration(batch['compute_input']),
      computeInfer: duration(batch['compute_infer']),
      computeOutput: duration(batch['compute_output']),
    })),
    memory: list(stats['memory_usage']).map((usage) => ({
      type: text(usage['type']),
      id: count(usage['id']),
      sizeBytes: count(usage['byte_size']),
    })),
  };
};

const inlineParameters = ({ config, files }: InlineModel) => ({
  config: { string_param: JSON.stringify(config) },
  ...Object.fromEntries([...files].map(([path, bytes]) => [`file:${path}`, { bytes_param: bytes }])),
});

export function createTritonControl(options: TritonControlOptions): TritonControl {
  const { grpc, timeoutMs = 5_000, loadTimeoutMs = 120_000, headers = {}, onCall } = options;
  const channel = openChannel(grpc);
  const metadata = restrictedMetadata(headers);

  async function call(method: string, request: object, of: string, at: CallOptions | undefined, limitMs = timeoutMs) {
    const started = performance.now();
    try {
      const answer = await callUnary(channel, serviceMethods[method]!, request, {
        timeoutMs: at?.timeoutMs ?? limitMs,
        signal: at?.signal,
        metadata,
      });
      onCall?.(method, 'ok', performance.now() - started);
      return plainOf(answer.$type, answer) as Plain;
    } catch (error) {
      const fault = error instanceof TritonFault ? error : grpcFault(error, `${method}${of} at ${grpc}`);
      onCall?.(method, fault.kind, performance.now() - started);
      throw fault;
    }
  }
  const ofModel = (name: string) => ` of ${name}`;

  return {
    live: async (at) => (await call('ServerLive', {}, '', at))['live'] === true,
    ready: async (at) => (await call('ServerReady', {}, '', at))['ready'] === true,
    async serverMetadata(at) {
      const answer = await call('ServerMetadata', {}, '', at);
      return { name: text(answer['name']), version: text(answer['version']), extensions: answer['extensions'] ?? [] };
    },
    async index(at) {
      const answer = await call('RepositoryIndex', {}, '', at);
      return list(answer['models']).map((entry) => ({
        name: text(entry['name']),
        version: text(entry['version']),
        state: text(entry['state']) as IndexState,
        reason: text(entry['reason']),
      }));
    },
    async load(name, at) {
      const request = { model_name: name, ...(at?.inline ? { parameters: inlineParameters(at.inline) } : {}) };
      await call('RepositoryModelLoad', request, ofModel(name), at, loadTimeoutMs);
    },
    async unload(name, at) {
      await call('RepositoryModelUnload', { model_name: name }, ofModel(name), at);
    },
    modelReady: async (name, at) => (await call('ModelReady', { name }, ofModel(name), at))['ready'] === true,
    async modelMetadata(name, at) {
      const answer = await call('ModelMetadata', { name }, ofModel(name), at);
      return {
        name: text(answer['name']),
        versions: answer['versions'] ?? [],
        platform: text(answer['platform']),
        inputs: list(answer['inputs']).map(specOf),
        outputs: list(answer['outputs']).map(specOf),
      };
    },
    async modelConfig(name, at) {
      return ((await call('ModelConfig', { name }, ofModel(name), at))['config'] ?? {}) as ModelConfig;
    },
    async statistics(name, at) {
      const answer = await call('ModelStatistics', name ? { name } : {}, name ? ofModel(name) : '', at);
      return list(answer['model_stats']).map(statisticsOf);
    },
    close: () => channel.close(),
  };
}
