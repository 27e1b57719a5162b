/**
 * Configurations that break one of Triton's rules each, and some that look odd and are fine. Ours (`configFaults`) and a
 * real server are held to the same table, so that neither refuses more nor less than the other.
 */
export interface ConfigRule {
  name: string;
  text: string;
  /** What we say; null: nothing is wrong. */
  ours: RegExp | null;
  /** What the server says. */
  real?: RegExp;
}

const x = 'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }\n';
const y = 'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\n';
const cpu = 'instance_group { kind: KIND_CPU count: 1 }\n';
const onnx = 'backend: "onnxruntime"\n';
const whole = `${onnx}max_batch_size: 8\n${x}${y}${cpu}`;
const withInput = (fields: string, batch = 8) => `${onnx}max_batch_size: ${batch}\ninput { ${fields} }\n${y}${cpu}`;
const withGroup = (fields: string) => `${onnx}max_batch_size: 8\n${x}${y}instance_group { ${fields} }`;
const sequence = (fields: string) => `${whole}sequence_batching { ${fields} }`;
const start = (name: string, values = 'fp32_false_true: [ 0, 1 ]', kind = 'START') =>
  `control_input { name: "${name}" control { kind: CONTROL_SEQUENCE_${kind} ${values} } }`;
const state = (fields: string, dims = 1) =>
  sequence(`state { input_name: "i" output_name: "o" data_type: TYPE_FP32 dims: [ ${dims} ] ${fields} }`);
const initial = (fields: string) => `initial_state { ${fields} }`;
const warm = (value: string, more = 'batch_size: 1') =>
  `${whole}model_warmup { name: "w" ${more} inputs { key: "x" value { ${value} } } }`;
const xData = 'data_type: TYPE_FP32 dims: [ 4 ] zero_data: true';
const step = (from = 'x', to = 'y', model = 'model_name: "scale" model_version: -1') =>
  `step { ${model} input_map { key: "x" value: "${from}" } output_map { key: "y" value: "${to}" } }`;
const ensemble = (steps: string, more = '', tensors = x + y) =>
  `platform: "ensemble"\nmax_batch_size: 8\n${tensors}${more}ensemble_scheduling { ${steps} }`;

const rule = (name: string, text: string, ours: RegExp | null, real?: RegExp): ConfigRule => ({
  name,
  text,
  ours,
  ...(real ? { real } : {}),
});

export const configRules: readonly ConfigRule[] = [
  rule('whole', whole, null),
  rule('unknown-platform', `platform: "foo"\n${x}${y}${cpu}`, /platform 'foo' is none of tensorrt_plan/, /unexpected platform type/),
  rule('other-backend', `platform: "tensorrt_plan"\n${onnx}${x}${y}${cpu}`, /has the backend 'tensorrt', not 'onnxruntime'/, /unexpected 'platform' and 'backend' pair/),
  rule('negative-batch', `${onnx}max_batch_size: -1\n${x}${y}${cpu}`, /max_batch_size -1 is negative/, /must be non-negative/),
  rule('no-dims', withInput('name: "x" data_type: TYPE_FP32'), /input 'x' has no dims/, /must specify 'dims'/),
  rule('zero-dim', withInput('name: "x" data_type: TYPE_FP32 dims: [ 0 ]'), /a size in dims \[0\]/, /dimension must be integer >= 1/),
  rule('no-type', withInput('name: "x" dims: [ 4 ]'), /input 'x' has no data_type/, /must specify 'data_type'/),
  rule('no-name', withInput('data_type: TYPE_FP32 dims: [ 4 ]'), /input 1 has no name/, /must specify 'name'/),
  rule('reshape-count', withInput('name: "x" data_type: TYPE_FP32 dims: [ 5 ] reshape { shape: [ 4 ] }'), /differ in their element count/, /different size for dims and reshape/),
  rule('reshape-free', withInput('name: "x" data_type: TYPE_FP32 dims: [ -1 ] reshape { shape: [ 4 ] }'), /as many -1/, /different size for dims and reshape/),
  rule('reshape-empty', withInput('name: "x" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] }', 0), /an empty reshape wants a max_batch_size/, /cannot have empty reshape/),
  rule('reshape-zero', withInput('name: "x" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 0 ] }'), /a size in reshape \[0\]/, /reshape dimensions must be integer/),
  rule('image-dims', withInput('name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 4 ]'), /FORMAT_NCHW wants three dims/, /require 3 dims/),
  rule('optional', withInput('name: "x" data_type: TYPE_FP32 dims: [ 4 ] optional: true'), null),
  rule('preferred-over', `${whole}dynamic_batching { preferred_batch_size: 16 }`, /preferred_batch_size 16/, /must be <= max batch size/),
  rule('preferred-zero', `${whole}dynamic_batching { preferred_batch_size: 0 }`, /preferred_batch_size 0/, /must be positive/),
  rule('ordering-levels', `${whole}dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }`, /one priority level at most/, /Only one priority level/),
  rule('ordering-delay', `${whole}dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 } }`, /DELAY exclude/, /can not have DELAY/),
  rule('ordering-no-timeout', `${whole}dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }`, null),
  rule('levels-without-default', `${whole}dynamic_batching { priority_levels: 2 }`, /default_priority_level 0 is not between 1 and priority_levels 2/, /must be in range \[1, 2\]/),
  rule('default-over', `${whole}dynamic_batching { priority_levels: 2 default_priority_level: 3 }`, /default_priority_level 3/, /must be in range \[1, 2\]/),
  rule('policy-over', `${whole}dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } } }`, /priority_queue_policy 3/, /must have priority level in range/),
  rule('cpu-gpus', withGroup('kind: KIND_CPU gpus: [ 0 ]'), /KIND_CPU takes no gpus/, /KIND_CPU but specifies one or more GPUs/),
  rule('model-gpus', withGroup('kind: KIND_MODEL gpus: [ 0 ]'), /KIND_MODEL takes no gpus/, /KIND_MODEL but specifies one or more GPUs/),
  rule('profile', withGroup('kind: KIND_CPU profile: "1"'), /profile is for TensorRT alone/, /only supported for TensorRT models/),
  rule('groups', withGroup('kind: KIND_CPU passive: true host_policy: "p" } instance_group { kind: KIND_CPU rate_limiter { resources { name: "R" count: 4 } priority: 2 }'), null),
  rule('cache-sequence', `${whole}response_cache { enable: true } sequence_batching { }`, /response_cache and sequence_batching/, /sequence batching scheduler/),
  rule('cache-decoupled', `${whole}response_cache { enable: true } model_transaction_policy { decoupled: true }`, /response_cache and a decoupled/, /'decoupled' transaction policy/),
  rule('sequence-defaults', sequence(''), null),
  rule('two-starts', sequence(start('S') + start('T')), /CONTROL_SEQUENCE_START has several/, /multiple CONTROL_SEQUENCE_START/),
  rule('no-values', sequence(start('S', '')), /wants one of int32_false_true, fp32_false_true, bool_false_true, got 0/, /must specify either 'int32_false_true'/),
  rule('two-values', sequence(start('S', 'fp32_false_true: [ 0, 1 ] int32_false_true: [ 0, 1 ]')), /got 2/, /specifies more than one/),
  rule('three-values', sequence(start('S', 'fp32_false_true: [ 0, 1, 2 ]')), /wants two values/, /exactly 2 entries/),
  rule('correlation-type', sequence(start('C', 'data_type: TYPE_FP32', 'CORRID')), /CONTROL_SEQUENCE_CORRID wants data_type/, /unexpected data type for control/),
  rule('correlation-values', sequence(start('C', 'data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ]', 'CORRID')), /takes no int32_false_true/, /must not specify either/),
  rule('control-name', sequence(start('')), /control_input 1 has no name/, /must have a name/),
  rule('control-twice', sequence(start('S') + start('S', 'fp32_false_true: [ 0, 1 ]', 'END')), /control_input 'S' is given twice/, /specified for multiple control kinds/),
  rule('oldest-over', sequence('oldest { max_candidate_sequences: 4 preferred_batch_size: 16 }'), /preferred_batch_size 16/, /must be <= max batch size/),
  rule('slots', sequence('direct { minimum_slot_utilization: 2 }'), /minimum_slot_utilization 2/, /minimum slot utilization/),
  rule('initial-free', state(initial('data_type: TYPE_FP32 dims: [ -1 ] zero_data: true name: "z"'), -1), /its dims may not be free/, /contains variable dimensions/),
  rule('initial-none', state(initial('data_type: TYPE_FP32 dims: [ 1 ] name: "z"')), /wants zero_data or data_file/, /to have state_data set/),
  rule('initial-type', state(initial('data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "z"')), /is TYPE_INT32, the state TYPE_FP32/, /does not match the state data type/),
  rule('initial-name', state(initial('data_type: TYPE_FP32 dims: [ 1 ] zero_data: true')), /has no name/, /Field 'name' must be set/),
  rule('warm', warm(xData, 'batch_size: 8 count: 2'), null),
  rule('latest-none', `${whole}version_policy { latest { num_versions: 0 } }`, /num_versions of at least 1/, /at least one version must be available/),
  rule('specific-none', `${whole}version_policy { specific { } }`, /names no version/, /at least one version must be available/),
  rule('batch-input-source', `${whole}batch_input { kind: BATCH_ELEMENT_COUNT target_name: "e" data_type: TYPE_FP32 }`, /wants one source_input/, /expects 1 source input/),
  rule('batch-input-type', `${whole}batch_input { kind: BATCH_ELEMENT_COUNT target_name: "e" data_type: TYPE_STRING source_input: "x" }`, /data_type is TYPE_INT32 or TYPE_FP32/, /must be TYPE_INT32 or TYPE_FP32/),
  rule('batch-input-unknown', `${whole}batch_input { kind: BATCH_ELEMENT_COUNT target_name: "e" data_type: TYPE_FP32 source_input: "q" }`, /no input 'q'/, /unknown source input name/),
  rule('batch-output-unknown', `${whole}batch_output { target_name: "q" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }`, /no output 'q'/, /unknown target output name/),
  rule('accelerated', `${whole}optimization { graph { level: 1 } priority: PRIORITY_MAX execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }`, null),
  rule('tags', `${whole}metric_tags { key: "team_1" value: "a b" }`, null),
  rule('steps', ensemble(step()), null),
  rule('no-step', ensemble(''), /at least one step/, /must specify 'step'/),
  rule('no-schedule', `platform: "ensemble"\nmax_batch_size: 8\n${x}${y}`, /wants ensemble_scheduling/, /ensemble scheduling must be set/),
  rule('ensemble-group', ensemble(step(), cpu), /takes no instance_group/, /instance group should not be specified/),
  rule('ensemble-backend', ensemble(step(), onnx), /takes no backend/, /empty backend type/),
  rule('ensemble-optimization', ensemble(step(), 'optimization { graph { level: 1 } }\n'), /takes no optimization/, /optimization should not be specified/),
  rule('ensemble-warmup', ensemble(step(), `model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { ${xData} } } }\n`), /takes no model_warmup/, /model_warmup can not be specified/),
  rule('step-name', ensemble(step('x', 'y', 'model_version: -1')), /step 1 has no model_name/, /must specify 'model_name'/),
  rule('step-inputs', ensemble('step { model_name: "scale" model_version: -1 output_map { key: "y" value: "y" } }'), /has no input_map/, /must specify 'input_map'/),
  rule('step-outputs', ensemble('step { model_name: "scale" model_version: -1 input_map { key: "x" value: "x" } }'), /has no output_map/, /must specify 'output_map'/),
  rule('unused-input', ensemble(step(), '', `${x}${x.replace('"x"', '"u"')}${y}`), /ensemble input 'u' is used by no step/, /is not used/),
  rule('unproduced-output', ensemble(step(), '', `${x}${y}${y.replace('"y"', '"u"')}`), /ensemble output 'u' is produced by no step/, /is not used/),
  rule('produced-twice', ensemble(step() + step()), /'y' is produced more than once/, /only once/),
  rule('orphan', ensemble(step('q')), /'q' is used by a step and produced by none/, /is not used/),
  rule('circle', ensemble(step('b', 'a') + step('a', 'b') + step()), /steps wait for one another: scale, scale/, /is unused/),
  rule('no-input', ensemble(step(), '', y), /at least one input/, /is not connected/),
  rule('schedule-of-model', `${whole}ensemble_scheduling { ${step()} }`, /wants platform 'ensemble'/, /whose platform is not ensemble/),
]; // biome-ignore format: one row a rule

/**
 * Warm-up requests that fail: the server says so, or, when its batcher is quicker than its clean-up, ends (both seen on
 * 2.51 with one and the same configuration). Ours must never let them through.
 */
export const riskyRules: readonly ConfigRule[] = [
  rule('warm-type', warm('data_type: TYPE_INT32 dims: [ 4 ] zero_data: true'), /is TYPE_INT32, the model wants TYPE_FP32/, /data-type is 'INT32'/),
  rule('warm-dims', warm('data_type: TYPE_FP32 dims: [ 5 ] zero_data: true'), /has dims \[5\], the model wants \[4\]/, /unexpected shape/),
  rule('warm-free', warm('data_type: TYPE_FP32 dims: [ -1 ] zero_data: true'), /is not at least 1/, /all variable-size dimensions are specified/),
  rule('warm-data', warm('data_type: TYPE_FP32 dims: [ 4 ]'), /wants zero_data, random_data or input_data_file/, /to have input_data_type set/),
  rule('warm-inputs', `${whole}model_warmup { name: "w" batch_size: 1 }`, /has no inputs/, /missing required input/),
  rule('warm-batch', warm(xData, 'batch_size: 16'), /batch_size 16 is above 8/, /batch size 16/),
]; // biome-ignore format: one row a rule

/** Ends the process of a real server, each time, while it makes its metrics. */
export const deadlyRule: ConfigRule = rule('tag', `${whole}metric_tags { key: "a-b" value: "c" }`, /metric_tags 'a-b'/);
