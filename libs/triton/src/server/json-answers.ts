import protobuf from 'protobufjs';
import { type ModelConfig, modelConfigType } from '../control/model-config.ts';
import type { ModelStatistics } from '../control/triton.client.ts';
import { type InferResponse, jsonTextOf } from '../wire/index.ts';

type Plain = Record<string, unknown>;

const defaultOf = (field: protobuf.Field): unknown => {
  if (field.map) return {};
  if (field.repeated) return [];
  if (field.partOf || field.resolvedType instanceof protobuf.Type) return undefined;
  if (field.resolvedType instanceof protobuf.Enum) return field.resolvedType.valuesById[0];
  return field.type === 'string' ? '' : field.type === 'bool' ? false : 0;
};

/** JSON form of a message with every scalar, list and map written out, as Triton answers. */
function filled(type: protobuf.Type, message: Plain): Plain {
  const json: Plain = {};
  for (const field of type.fieldsArray) {
    const { resolvedType } = field.resolve();
    const value = message[field.name] ?? defaultOf(field);
    if (value === undefined) continue;
    if (!(resolvedType instanceof protobuf.Type)) json[field.name] = value;
    else if (field.repeated) json[field.name] = (value as Plain[]).map((item) => filled(resolvedType, item));
    else if (field.map)
      json[field.name] = Object.fromEntries(
        Object.entries(value as Plain).map(([key, item]) => [key, filled(resolvedType, item as Plain)]),
      );
    else json[field.name] = filled(resolvedType, value as Plain);
  }
  return json;
}

export const configJson = (config: ModelConfig): Plain => filled(modelConfigType, config);

const none = { count: 0, ns: 0 };

/** The message `ModelStatistics` as plain values; the same for HTTP and gRPC. */
export const statisticsMessage = (stats: ModelStatistics): Plain => ({
  name: stats.name,
  version: stats.version,
  last_inference: stats.lastInference,
  inference_count: stats.inferenceCount,
  execution_count: stats.executionCount,
  inference_stats: {
    success: stats.success,
    fail: stats.fail,
    queue: stats.queue,
    compute_input: stats.computeInput,
    compute_infer: stats.computeInfer,
    compute_output: stats.computeOutput,
    cache_hit: none,
    cache_miss: none,
  },
  response_stats: {},
  batch_stats: stats.batches.map((batch) => ({
    batch_size: batch.batchSize,
    compute_input: batch.computeInput,
    compute_infer: batch.computeInfer,
    compute_output: batch.computeOutput,
  })),
  memory_usage: stats.memory.map(({ type, id, sizeBytes }) => ({ type, id, byte_size: sizeBytes })),
});

/** Text of an infer answer's JSON; binary outputs carry only their size. Returns their bytes in order. */
export function inferAnswer(response: InferResponse, isBinary: (output: string) => boolean) {
  const binary: Uint8Array[] = [];
  const outputs = response.outputs.map(({ name, datatype, shape, bytes }) => {
    const head = `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}]`;
    if (!isBinary(name)) return `${head},"data":${jsonTextOf(datatype, bytes, name)}}`;
    binary.push(bytes);
    return `${head},"parameters":{"binary_data_size":${bytes.length}}}`;
  });
  const id = response.id ? `"id":${JSON.stringify(response.id)},` : '';
  const parameters = response.parameters ? `"parameters":${JSON.stringify(response.parameters)},` : '';
  const text = `{${id}"model_name":${JSON.stringify(response.modelName)},"model_version":"${response.modelVersion}",${parameters}"outputs":[${outputs.join(',')}]}`;
  return { text, binary };
}
