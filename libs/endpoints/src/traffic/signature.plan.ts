import type { EngineTensor, Signature, TensorSpec } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import type { DeploymentBody } from '../resolve/engine.plan.ts';

const withBatch = (tensors: readonly EngineTensor[], maxBatchSize: number): TensorSpec[] =>
  tensors.map(({ name, type, dims, optional }) => ({
    name,
    datatype: type,
    shape: maxBatchSize > 0 ? [-1, ...dims] : dims,
    ...(optional ? { optional } : {}),
  }));

/** Tensors and batch of a deployment's model: as a server that proved it tells, else as its settings declare; without one none. */
export function signatureOf(
  { variants }: DeploymentBody,
  placements: readonly Pick<Placement, 'proved' | 'observed' | 'tritonModel'>[],
  tritonModel?: string,
): Signature & { maxBatchSize: number } {
  if (variants.length === 0) return { maxBatchSize: 0, inputs: [], outputs: [] };
  const told = placements.find(({ proved, observed }) => proved && observed?.inputs && observed.outputs)?.observed;
  const { engine } = (variants.find((variant) => variant.tritonModel === tritonModel) ?? variants[0]!).model;
  const maxBatchSize = told?.maxBatchSize ?? engine.maxBatchSize;
  return {
    maxBatchSize,
    inputs: told?.inputs ?? withBatch(engine.inputs, maxBatchSize),
    outputs: told?.outputs ?? withBatch(engine.outputs, maxBatchSize),
  };
}
