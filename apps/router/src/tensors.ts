import type { DataType, Tensors } from '@perch/contracts';
import type { InferResponse, NamedTensor } from '@perch/triton/inference';

/** Tensors by name as the model server's client takes them. */
export function namedTensors(tensors: Tensors): NamedTensor[] {
  const named: NamedTensor[] = [];
  for (const name in tensors) {
    const { datatype, shape, bytes } = tensors[name]!;
    named.push({ name, datatype, shape: shape as number[], bytes });
  }
  return named;
}

export function tensorsByName({ outputs }: InferResponse): Tensors {
  const tensors: Tensors = {};
  for (const { name, datatype, shape, bytes } of outputs)
    tensors[name] = { datatype: datatype as DataType, shape, bytes };
  return tensors;
}
