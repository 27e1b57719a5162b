import type { SequenceBatching, Warmup } from '@perch/contracts';
import { configTypeOf } from './model-config.ts';
import type { PlainMessage } from './text-parser.ts';

/** Without the members that have no value. */
export const compact = <T extends object>(message: T): T =>
  Object.fromEntries(Object.entries(message).filter(([, value]) => value !== undefined)) as T;

type Control = NonNullable<SequenceBatching['controlInputs']>[number]['controls'][number];
const controlKinds = {
  start: 'CONTROL_SEQUENCE_START',
  ready: 'CONTROL_SEQUENCE_READY',
  end: 'CONTROL_SEQUENCE_END',
  correlation_id: 'CONTROL_SEQUENCE_CORRID',
} as const;

const controlOf = (control: Control): PlainMessage =>
  compact({
    kind: controlKinds[control.kind],
    int32_false_true: control.int32FalseTrue,
    fp32_false_true: control.fp32FalseTrue,
    bool_false_true: control.boolFalseTrue,
    data_type: control.type && configTypeOf(control.type),
  });

type State = NonNullable<SequenceBatching['states']>[number];
const stateOf = (state: State): PlainMessage =>
  compact({
    input_name: state.inputName,
    output_name: state.outputName,
    data_type: configTypeOf(state.type),
    dims: state.dims,
    initial_state: state.initial?.map(({ name, type, dims, zeros, file }) =>
      compact({ data_type: configTypeOf(type), dims, zero_data: zeros, data_file: file, name }),
    ),
    use_same_buffer_for_input_output: state.sameBuffer || undefined,
    use_growable_memory: state.growableMemory || undefined,
  });

export const sequenceBatchingOf = (batching: SequenceBatching): PlainMessage =>
  compact({
    direct:
      batching.direct &&
      compact({
        max_queue_delay_microseconds: batching.direct.maxQueueDelayUs,
        minimum_slot_utilization: batching.direct.minimumSlotUtilization,
      }),
    oldest:
      batching.oldest &&
      compact({
        max_candidate_sequences: batching.oldest.maxCandidateSequences,
        preferred_batch_size: batching.oldest.preferredSizes,
        max_queue_delay_microseconds: batching.oldest.maxQueueDelayUs,
        preserve_ordering: batching.oldest.preserveOrdering || undefined,
      }),
    max_sequence_idle_microseconds: batching.maxIdleUs,
    control_input: batching.controlInputs?.map(({ name, controls }) => ({ name, control: controls.map(controlOf) })),
    state: batching.states?.map(stateOf),
    iterative_sequence: batching.iterative || undefined,
  });

export const warmupOf = ({ name, batchSize, count, inputs }: Warmup): PlainMessage =>
  compact({
    name,
    batch_size: batchSize,
    inputs: Object.fromEntries(
      Object.entries(inputs).map(([input, { type, dims, data }]) => [
        input,
        compact({
          data_type: configTypeOf(type),
          dims,
          zero_data: data === 'zeros' || undefined,
          random_data: data === 'random' || undefined,
          input_data_file: typeof data === 'string' ? undefined : data.file,
        }),
      ]),
    ),
    count,
  });
