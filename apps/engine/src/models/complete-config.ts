import { type ConfigTensor, configTypeOf, type ModelConfig, protocolTypeOf } from '@perch/triton/control';
import type { GraphTensor } from '../session/onnx-session.ts';

/** What Triton takes as the largest batch of a model that batches and does not say how much. */
const defaultMaxBatchSize = 4;

export interface Graph {
  inputs: readonly GraphTensor[];
  outputs: readonly GraphTensor[];
}

function tensorOf({ name, datatype, shape }: GraphTensor, batches: boolean): ConfigTensor {
  const dims = batches ? shape.slice(1) : shape;
  return {
    name,
    data_type: configTypeOf(datatype),
    dims: dims.length > 0 ? dims : [1],
    ...(dims.length > 0 ? {} : { reshape: { shape: [] } }),
  };
}

/**
 * The configuration with inputs and outputs read from the graph where they are missing. A model of which neither was
 * given and whose every tensor has a free first size batches: up to 4, dynamically. Throws in plain words.
 */
export function completeConfig(config: ModelConfig, graph: Graph): ModelConfig {
  const hasInputs = (config.input?.length ?? 0) > 0;
  const hasOutputs = (config.output?.length ?? 0) > 0;
  const completed: ModelConfig = { ...config, platform: config.platform || 'onnxruntime_onnx', backend: 'onnxruntime' };
  if (hasInputs && hasOutputs) return completed;
  const batches = [...graph.inputs, ...graph.outputs].every(({ shape }) => shape[0] === -1);
  let maxBatchSize = config.max_batch_size ?? 0;
  if (maxBatchSize > 0 && !batches)
    throw new Error('model does not support batching while non-zero max_batch_size is specified');
  if (maxBatchSize === 0 && batches && !hasInputs && !hasOutputs) {
    maxBatchSize = defaultMaxBatchSize;
    completed.max_batch_size = maxBatchSize;
    completed.dynamic_batching ??= {};
  }
  if (!hasInputs) completed.input = graph.inputs.map((tensor) => tensorOf(tensor, maxBatchSize > 0));
  if (!hasOutputs) completed.output = graph.outputs.map((tensor) => tensorOf(tensor, maxBatchSize > 0));
  return completed;
}

function tensorFault(
  kind: string,
  tensor: ConfigTensor,
  graph: readonly GraphTensor[],
  batches: boolean,
): string | undefined {
  const found = graph.find(({ name }) => name === tensor.name);
  if (!found) {
    const allowed = graph.map(({ name }) => name).join(', ');
    return `unexpected inference ${kind} '${tensor.name}', allowed ${kind}s are: ${allowed}`;
  }
  const datatype = protocolTypeOf(String(tensor.data_type));
  if (datatype !== found.datatype)
    return `${kind} '${tensor.name}' is ${datatype} in the configuration and ${found.datatype} in the model`;
  const dims = tensor.reshape ? (tensor.reshape.shape ?? []) : (tensor.dims ?? []);
  const full = batches ? [-1, ...dims] : dims;
  const agrees =
    full.length === found.shape.length &&
    full.every((size, i) => size === -1 || found.shape[i] === -1 || size === found.shape[i]);
  // A graph that declares no shape at all takes any.
  if (agrees || found.shape.length === 0) return undefined;
  return `${kind} '${tensor.name}': the model expects the shape [${found.shape.join(',')}] and the configuration says [${full.join(',')}]`;
}

/** What in a completed configuration contradicts the graph; undefined when they agree. */
export function graphFault(config: ModelConfig, graph: Graph): string | undefined {
  const batches = (config.max_batch_size ?? 0) > 0;
  for (const [kind, tensors, own] of [
    ['input', config.input ?? [], graph.inputs],
    ['output', config.output ?? [], graph.outputs],
  ] as const)
    for (const tensor of tensors) {
      const fault = tensorFault(kind, tensor, own, batches);
      if (fault) return fault;
    }
  const missing = graph.inputs.filter(({ name }) => !config.input?.some((input) => input.name === name));
  if (missing.length > 0)
    return `the model wants the inputs ${missing.map(({ name }) => `'${name}'`).join(', ')}, which are not configured`;
  return undefined;
}
