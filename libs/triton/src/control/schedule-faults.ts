import type { ConfigDynamicBatching, ConfigQueuePolicy } from './model-config.ts';

const delays = (policy: ConfigQueuePolicy | undefined): boolean =>
  policy?.timeout_action === 'DELAY' && Number(policy.default_timeout_microseconds ?? 0) > 0;

function priorityFaults(batching: ConfigDynamicBatching): string[] {
  const levels = Number(batching.priority_levels ?? 0);
  if (levels === 0) return [];
  const faults: string[] = [];
  const level = Number(batching['default_priority_level'] ?? 0);
  if (level < 1 || level > levels)
    faults.push(`default_priority_level ${level} is not between 1 and priority_levels ${levels}`);
  for (const key of Object.keys(batching.priority_queue_policy ?? {}))
    if (Number(key) < 1 || Number(key) > levels)
      faults.push(`priority_queue_policy ${key} is not between 1 and priority_levels ${levels}`);
  return faults;
}

const sizeFaults = (sizes: readonly number[] | undefined, maxBatchSize: number): string[] =>
  (sizes ?? [])
    .filter((size) => size < 1 || size > maxBatchSize)
    .map((size) => `preferred_batch_size ${size} is not between 1 and max_batch_size ${maxBatchSize}`);

export function batchingFaults(batching: ConfigDynamicBatching, maxBatchSize: number): string[] {
  const faults = [...sizeFaults(batching.preferred_batch_size, maxBatchSize), ...priorityFaults(batching)];
  if (!batching.preserve_ordering) return faults;
  if (Number(batching.priority_levels ?? 0) > 1) faults.push('preserve_ordering allows one priority level at most');
  const policies = [batching.default_queue_policy, ...Object.values(batching.priority_queue_policy ?? {})];
  if (policies.some(delays)) faults.push('preserve_ordering and timeout_action DELAY exclude one another');
  return faults;
}

interface Control {
  kind?: string | number;
  int32_false_true?: unknown[];
  fp32_false_true?: unknown[];
  bool_false_true?: unknown[];
  data_type?: string | number;
}
interface InitialState {
  data_type?: string | number;
  dims?: number[];
  zero_data?: boolean;
  data_file?: string;
  name?: string;
}
interface State {
  input_name?: string;
  data_type?: string | number;
  initial_state?: InitialState[];
}
/** `ModelSequenceBatching` as far as its rules look. */
export interface ConfigSequenceBatching {
  direct?: { minimum_slot_utilization?: number };
  oldest?: { preferred_batch_size?: number[] };
  control_input?: { name?: string; control?: Control[] }[];
  state?: State[];
}

const flags = ['int32_false_true', 'fp32_false_true', 'bool_false_true'] as const;
const correlationTypes = ['TYPE_UINT64', 'TYPE_INT64', 'TYPE_UINT32', 'TYPE_INT32', 'TYPE_STRING'];

function controlFaults(name: string, control: Control): string[] {
  const kind = control.kind ?? 'CONTROL_SEQUENCE_START';
  const given = flags.filter((flag) => (control[flag] ?? []).length > 0);
  const thing = `control_input '${name}'`;
  if (kind === 'CONTROL_SEQUENCE_CORRID') {
    const faults = given.map((flag) => `${thing}: ${kind} takes no ${flag}`);
    if (!correlationTypes.includes(String(control.data_type)))
      faults.push(`${thing}: ${kind} wants data_type ${correlationTypes.join(', ')}`);
    return faults;
  }
  if (given.length !== 1) return [`${thing}: ${kind} wants one of ${flags.join(', ')}, got ${given.length}`];
  return control[given[0]!]!.length === 2 ? [] : [`${thing}: ${given[0]} wants two values, for false and true`];
}

function controlInputFaults(batching: ConfigSequenceBatching): string[] {
  const faults: string[] = [];
  const kinds: string[] = [];
  for (const [index, { name, control }] of (batching.control_input ?? []).entries()) {
    if (!name) faults.push(`control_input ${index + 1} has no name`);
    if ((control ?? []).length > 1) faults.push(`control_input '${name}' has ${control!.length} controls; give one`);
    for (const one of control ?? []) {
      faults.push(...controlFaults(name ?? '', one));
      kinds.push(String(one.kind ?? 'CONTROL_SEQUENCE_START'));
    }
  }
  const names = (batching.control_input ?? []).map(({ name }) => name);
  const twice = (values: readonly (string | undefined)[]) =>
    new Set(values.filter((value, index) => value && values.indexOf(value) !== index));
  for (const kind of twice(kinds)) faults.push(`${kind} has several control_inputs; give one`);
  for (const name of twice(names)) faults.push(`control_input '${name}' is given twice`);
  return faults;
}

function stateFaults({ input_name: input, data_type: type, initial_state: initial }: State): string[] {
  const [first] = initial ?? [];
  if (!first) return [];
  const thing = `initial_state of state '${input ?? ''}'`;
  const faults: string[] = [];
  if (initial!.length > 1) faults.push(`${thing} is given ${initial!.length} times; give one`);
  if (!first.name) faults.push(`${thing} has no name`);
  if (first.data_type !== type) faults.push(`${thing} is ${first.data_type ?? 'without data_type'}, the state ${type}`);
  if ((first.dims ?? []).some((size) => size < 1)) faults.push(`${thing}: its dims may not be free`);
  if (first.zero_data === undefined && first.data_file === undefined)
    faults.push(`${thing} wants zero_data or data_file`);
  return faults;
}

export function sequenceFaults(batching: ConfigSequenceBatching, maxBatchSize: number): string[] {
  const slots = batching.direct?.minimum_slot_utilization ?? 0;
  return [
    ...(slots < 0 || slots > 1 ? [`minimum_slot_utilization ${slots} is not between 0 and 1`] : []),
    ...sizeFaults(batching.oldest?.preferred_batch_size, maxBatchSize),
    ...controlInputFaults(batching),
    ...(batching.state ?? []).flatMap(stateFaults),
  ];
}
