import type { DataType } from '@perch/contracts';
import { type ConfigTensor, type ModelConfig, protocolTypeOf } from '@perch/triton/control';

/** A declared tensor of a model, as requests are held against it. */
export interface DeclaredTensor {
  name: string;
  datatype: DataType;
  /** Without the batch dimension; -1 = any. */
  dims: number[];
  /** The shape the graph sees instead of `dims`, likewise without the batch dimension. */
  reshape: number[] | undefined;
  optional: boolean;
}

export interface DeclaredModel {
  name: string;
  /** 0: no batch dimension. */
  maxBatchSize: number;
  inputs: DeclaredTensor[];
  outputs: DeclaredTensor[];
}

const declared = (tensor: ConfigTensor): DeclaredTensor => ({
  name: tensor.name ?? '',
  datatype: protocolTypeOf(String(tensor.data_type)) as DataType,
  dims: tensor.dims ?? [],
  reshape: tensor.reshape ? (tensor.reshape.shape ?? []) : undefined,
  optional: tensor.optional === true,
});

export const declaredModel = (config: ModelConfig): DeclaredModel => ({
  name: config.name ?? '',
  maxBatchSize: config.max_batch_size ?? 0,
  inputs: (config.input ?? []).map(declared),
  outputs: (config.output ?? []).map(declared),
});

/** The whole shape of a tensor as the protocol shows it: with -1 in front where the model batches. */
export const fullShape = (model: DeclaredModel, dims: readonly number[]): number[] =>
  model.maxBatchSize > 0 ? [-1, ...dims] : [...dims];

/** `to` with each -1 filled by the sizes that stand at the -1 of `from`, in order. */
export function fillShape(to: readonly number[], from: readonly number[], sizes: readonly number[]): number[] {
  const free = sizes.filter((_size, index) => from[index] === -1);
  return to.map((size) => (size === -1 ? (free.shift() ?? -1) : size));
}
