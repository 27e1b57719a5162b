import { AppError, type EndpointSpecInput } from '@perch/contracts';
import { parseSize } from '../duration.ts';
import { parsePairs } from '../reference.ts';
import { type Flags, given, list, numbers, text, whole, yes } from './flag-value.plan.ts';

type Engine = NonNullable<EndpointSpecInput['engine']>;

/** `input_ids:INT64:-1,-1` */
export function parseTensor(value: string, flag: string): { name: string; type: never; dims: number[] } {
  const parts = value.split(':');
  const dims = parts.pop() ?? '';
  const type = parts.pop() ?? '';
  const name = parts.join(':');
  if (!name || !type)
    throw new AppError('invalid', `${flag}: wants name:type:dims such as input_ids:INT64:-1,-1, got "${value}"`);
  return { name, type: type.toUpperCase().replace(/^TYPE_/, '') as never, dims: numbers(dims, flag) };
}

/** `cpu:2`, `gpu:1:0,1` */
function parseInstance(value: string): { kind: 'cpu'; count: number; gpus?: number[] } {
  const [kind, count = '1', gpus, ...rest] = value.split(':');
  if (!kind || !/^\d+$/.test(count) || rest.length > 0)
    throw new AppError('invalid', `--instances: wants kind:count[:gpus] such as cpu:2 or gpu:1:0,1, got "${value}"`);
  return {
    kind: kind.toLowerCase() as 'cpu',
    count: Number(count),
    ...(gpus === undefined ? {} : { gpus: numbers(gpus, '--instances') }),
  };
}

const flag = '--accelerator';
type Accelerators = NonNullable<Engine['executionAccelerators']>;
type Accelerator = NonNullable<Accelerators['gpu']>[number];

/** `tensorrt:precision=FP16,workspace=1GiB`; other keys are the back-end's own. */
function parseAccelerator(value: string): Accelerator {
  const [name = '', ...rest] = value.split(':');
  const settings = rest.join(':');
  const { precision, workspace, ...parameters } = parsePairs(settings ? settings.split(',') : [], flag);
  if (!name) throw new AppError('invalid', `${flag}: wants a name such as tensorrt:precision=FP16, got "${value}"`);
  return {
    name,
    ...(precision === undefined ? {} : { precision: precision.toUpperCase() as 'FP16' }),
    ...(workspace === undefined ? {} : { maxWorkspaceBytes: parseSize(workspace, flag) }),
    ...(Object.keys(parameters).length > 0 ? { parameters } : {}),
  };
}

/** OpenVINO runs on CPUs, all others on GPUs. */
function accelerators(values: string[] | undefined): Accelerators | undefined {
  if (!values) return undefined;
  const all = values.map(parseAccelerator);
  const cpu = all.filter(({ name }) => name === 'openvino');
  const gpu = all.filter(({ name }) => name !== 'openvino');
  return { ...(gpu.length > 0 ? { gpu } : {}), ...(cpu.length > 0 ? { cpu } : {}) };
}

function tensorrtOf(flags: Flags, before: Engine): Engine['tensorrt'] {
  const capability = text(flags, 'computeCapability');
  const list = capability?.split(',').map((part) => part.trim());
  const said = given({
    version: text(flags, 'tensorrtVersion'),
    computeCapability: list && (list.length === 1 ? list[0] : list),
  });
  return said && { ...before.tensorrt, ...said };
}

function batchingOf(flags: Flags, before: Engine): Engine['dynamicBatching'] {
  const preferred = text(flags, 'preferredBatch');
  const said = given({
    preferredSizes: preferred === undefined ? undefined : numbers(preferred, '--preferred-batch'),
    maxQueueDelayUs: whole(flags, 'batchDelayUs', '--batch-delay-us'),
    maxQueueSize: whole(flags, 'queueSize', '--queue-size'),
  });
  return said && { ...before.dynamicBatching, ...said };
}

/** What the flags say of the engine, over what was said before; `config` is the text of the pbtxt file. */
export function enginePart(flags: Flags, before: Engine | undefined, config: string | undefined): Engine | undefined {
  const memory = text(flags, 'memory');
  const priority = text(flags, 'formatPriority');
  const parameters = list(flags, 'parameter');
  const part = given<Engine>({
    platform: text(flags, 'platform'),
    formatPriority: priority?.split(',').map((format) => format.trim()),
    maxBatchSize: whole(flags, 'maxBatch', '--max-batch'),
    dynamicBatching: batchingOf(flags, before ?? {}),
    instances: list(flags, 'instances')?.map(parseInstance),
    inputs: list(flags, 'input')?.map((value) => parseTensor(value, '--input')),
    outputs: list(flags, 'outputTensor')?.map((value) => parseTensor(value, '--output-tensor')),
    parameters: parameters && { ...before?.parameters, ...parsePairs(parameters, '--parameter') },
    defaultModelFilename: text(flags, 'defaultModelFilename'),
    folder: text(flags, 'folder'),
    executionAccelerators: accelerators(list(flags, 'accelerator')),
    responseCache: yes(flags, 'responseCache', '--response-cache'),
    decoupled: yes(flags, 'decoupled', '--decoupled'),
    tensorrt: tensorrtOf(flags, before ?? {}),
    memoryBytes: memory === undefined ? undefined : parseSize(memory, '--memory'),
    config,
  });
  if (!part) return before;
  // One way of choosing the format replaces the other.
  const { platform, formatPriority, ...rest } = before ?? {};
  const choice = part.platform || part.formatPriority ? {} : given({ platform, formatPriority });
  return { ...rest, ...choice, ...part };
}
