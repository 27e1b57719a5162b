import type { Accelerator, ExecutionAccelerators, Optimization } from '@perch/contracts';
import { compact } from './scheduling-config.ts';
import type { PlainMessage } from './text-parser.ts';

const acceleratorOf = ({ name, precision, maxWorkspaceBytes, parameters }: Accelerator): PlainMessage => {
  const all = compact({
    precision_mode: precision,
    max_workspace_size_bytes: maxWorkspaceBytes === undefined ? undefined : String(maxWorkspaceBytes),
    ...parameters,
  });
  return Object.keys(all).length > 0 ? { name, parameters: all } : { name };
};

const acceleratorsOf = ({ gpu, cpu }: ExecutionAccelerators): PlainMessage =>
  compact({
    gpu_execution_accelerator: gpu?.map(acceleratorOf),
    cpu_execution_accelerator: cpu?.map(acceleratorOf),
  });

type Cuda = NonNullable<Optimization['cuda']>;
type GraphSpec = NonNullable<Cuda['graphSpecs']>[number];
const shapesOf = (inputs: Record<string, number[]> | undefined) =>
  inputs && Object.fromEntries(Object.entries(inputs).map(([name, dim]) => [name, { dim }]));

const graphSpecOf = ({ batchSize, inputs, lowerBound }: GraphSpec): PlainMessage =>
  compact({
    batch_size: batchSize,
    input: shapesOf(inputs),
    graph_lower_bound: lowerBound && compact({ batch_size: lowerBound.batchSize, input: shapesOf(lowerBound.inputs) }),
  });

const cudaOf = ({ graphs, busyWaitEvents, outputCopyStream, graphSpecs }: Cuda): PlainMessage =>
  compact({
    graphs,
    busy_wait_events: busyWaitEvents,
    graph_spec: graphSpecs?.map(graphSpecOf),
    output_copy_stream: outputCopyStream,
  });

const pinned = (enable: boolean | undefined) => (enable === undefined ? undefined : { enable });

/** Both halves of what we call optimization and execution accelerators; undefined when neither says anything. */
export function optimizationOf(
  optimization: Optimization | undefined,
  accelerators: ExecutionAccelerators | undefined,
): PlainMessage | undefined {
  if (!optimization && !accelerators) return undefined;
  const { graphLevel, priority, cuda, inputPinnedMemory, outputPinnedMemory, ...rest } = optimization ?? {};
  return compact({
    graph: graphLevel === undefined ? undefined : { level: graphLevel },
    priority: priority && `PRIORITY_${priority.toUpperCase()}`,
    cuda: cuda && cudaOf(cuda),
    execution_accelerators: accelerators && acceleratorsOf(accelerators),
    input_pinned_memory: pinned(inputPinnedMemory),
    output_pinned_memory: pinned(outputPinnedMemory),
    gather_kernel_buffer_threshold: rest.gatherKernelBufferThreshold,
    eager_batching: rest.eagerBatching,
  });
}
