import type { Signature, TensorSpec } from '@perch/contracts';
import type { DeclaredTensor } from './version.source.ts';

/** What a configuration says of a graph; a list left out was not declared. */
export interface DeclaredGraph {
  maxBatchSize: number;
  inputs?: readonly DeclaredTensor[];
  outputs?: readonly DeclaredTensor[];
}

const shown = (shape: readonly number[]) => `[${shape.join(', ')}]`;

/** How to export the graph so that a dimension is free. */
const exportWords = (name: string, dimension: number, word: string) =>
  `export it again with dynamic_axes={"${name}": {${dimension}: "${word}"}} of torch.onnx.export (dynamic_shapes with dynamo=True)`;

function fixedFault(kind: string, graph: TensorSpec, dimension: number, batched: boolean): string {
  const batch = batched && dimension === 0;
  const word = batch ? 'batch' : dimension === (batched ? 1 : 0) ? 'sequence' : `dim_${dimension}`;
  const said = batch ? 'max_batch_size above 0 wants it free' : 'the configuration says -1';
  const instead = batch ? 'or set max batch size 0' : `or declare ${graph.shape[dimension]}`;
  return `${kind} "${graph.name}": dimension ${dimension}${batch ? ' (batch)' : ''} is fixed at ${graph.shape[dimension]} in the graph ${shown(graph.shape)} and ${said}: ${exportWords(graph.name, dimension, word)}, ${instead}`;
}

function tensorFaults(kind: string, said: DeclaredTensor, graph: TensorSpec, maxBatchSize: number): string[] {
  const batched = maxBatchSize > 0;
  const inner = said.reshape ?? said.dims;
  const wanted = batched ? [-1, ...inner] : inner;
  const faults: string[] = [];
  if (said.type !== graph.datatype)
    faults.push(`${kind} "${said.name}" is ${graph.datatype} in the graph and ${said.type} in the configuration`);
  // A scalar cannot be declared as such: one element stands for it.
  if (graph.shape.length === 0 && !batched && inner.every((size) => size === 1)) return faults;
  if (wanted.length !== graph.shape.length)
    return [
      ...faults,
      `${kind} "${said.name}" has ${graph.shape.length} dimensions in the graph ${shown(graph.shape)} and ${wanted.length} in the configuration ${shown(wanted)}${batched ? ', batch included' : ''}`,
    ];
  for (const [dimension, size] of graph.shape.entries()) {
    if (size === -1 || size === wanted[dimension]) continue;
    if (wanted[dimension] === -1) faults.push(fixedFault(kind, graph, dimension, batched));
    else
      faults.push(
        `${kind} "${said.name}": dimension ${dimension} is ${size} in the graph and ${wanted[dimension]} in the configuration`,
      );
  }
  return faults;
}

/** The batch dimension must be free in every tensor, declared or not. */
const batchFaults = (kind: string, tensors: readonly TensorSpec[]) =>
  tensors.filter(({ shape }) => shape.length > 0 && shape[0] !== -1).map((graph) => fixedFault(kind, graph, 0, true));

/**
 * Where a configuration and a graph contradict one another, so that no server could load the model: a dimension fixed in
 * the graph and free in the configuration, another size, rank, type or name. Each fault says what to do.
 */
export function graphFaults(said: DeclaredGraph, graph: Signature): string[] {
  const faults: string[] = [];
  for (const kind of ['input', 'output'] as const) {
    const known = graph[`${kind}s`];
    const declared = said[`${kind}s`];
    if (!declared) {
      if (said.maxBatchSize > 0) faults.push(...batchFaults(kind, known));
      continue;
    }
    for (const tensor of declared) {
      const found = known.find(({ name }) => name === tensor.name);
      if (found) faults.push(...tensorFaults(kind, tensor, found, said.maxBatchSize));
      else
        faults.push(
          `the graph has no ${kind} "${tensor.name}"; it has ${known.map(({ name }) => name).join(', ') || 'none'}`,
        );
    }
  }
  return faults;
}
