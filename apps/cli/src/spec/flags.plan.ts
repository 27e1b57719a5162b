import { AppError, type EndpointSpecInput, sourceModelName } from '@perch/contracts';
import { parseDuration, parseSize } from '../duration.ts';
import { parsePairs, parseReference } from '../reference.ts';

type Flags = Record<string, unknown>;
type Spec = Partial<EndpointSpecInput>;
type Part<K extends keyof EndpointSpecInput> = NonNullable<EndpointSpecInput[K]>;

const text = (flags: Flags, name: string): string | undefined => flags[name] as string | undefined;
const list = (flags: Flags, name: string): string[] | undefined => flags[name] as string[] | undefined;

function whole(flags: Flags, name: string, flag: string): number | undefined {
  const value = text(flags, name);
  if (value === undefined) return undefined;
  if (!/^\d{1,9}$/.test(value)) throw new AppError('invalid', `${flag}: wants a whole number, got "${value}"`);
  return Number(value);
}

function numbers(value: string, flag: string): number[] {
  const parsed = value.split(',').map((part) => Number(part.trim() || Number.NaN));
  if (parsed.some(Number.isNaN)) throw new AppError('invalid', `${flag}: wants numbers such as 8,16, got "${value}"`);
  return parsed;
}

const given = <T extends object>(part: T): T | undefined => {
  const known = Object.entries(part).filter(([, value]) => value !== undefined);
  return known.length > 0 ? (Object.fromEntries(known) as T) : undefined;
};

/** JSON where it is JSON, else the text as it stands: `--option maxTokens=256`, `--option padding={"to":128}`. */
export const looseValue = (value: string): unknown => {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
};

/**
 * The parts of a specification that flags name, over what `before` says about the same parts; undefined where no flag
 * speaks. `config` is the text of the pbtxt file, already read. The control plane validates the result.
 */
export function specFromFlags(flags: Flags, before: Spec = {}, config?: string): Spec {
  const spec: Spec = {
    model: modelPart(flags, before),
    engine: enginePart(flags, before, config),
    processing: processingPart(flags, before),
    fleet: given({
      ...before.fleet,
      ...given({ pool: text(flags, 'pool'), replicas: whole(flags, 'replicas', '--replicas') }),
    }),
    traffic: trafficPart(flags, before),
    limits: limitsPart(flags, before),
    access: flags['access'] === undefined ? before.access : { inference: text(flags, 'access') as 'key' },
    idempotent: yes(flags, 'idempotent') ?? before.idempotent,
    description: text(flags, 'description') ?? before.description,
  };
  return { ...before, ...given(spec) };
}

const versionNumbers = (value: string | undefined): number[] | undefined =>
  value === undefined ? undefined : numbers(value, '--versions');

/** What an external Triton holds; the control plane names project and model after it. */
function sourcePart(
  flags: Flags,
  source: string,
  select: Part<'model'>['select'],
  maxVersions: number | undefined,
): Part<'model'> {
  if (flags['model'] !== undefined) throw new AppError('invalid', 'give --model or --source, not both');
  const known = sourceModelName(source);
  return { ...known, source, ...given({ select, maxVersions: maxVersions ?? select?.versions?.length }) };
}

function yes(flags: Flags, name: string): boolean | undefined {
  const value = text(flags, name);
  if (value === undefined) return undefined;
  if (value !== 'true' && value !== 'false')
    throw new AppError('invalid', `--${name}: wants true or false, got "${value}"`);
  return value === 'true';
}

function modelPart(flags: Flags, before: Spec): Part<'model'> | undefined {
  const rule = given({
    tags: list(flags, 'tag'),
    tagMatch: text(flags, 'tagMatch') as 'any' | undefined,
    published: flags['drafts'] === true ? false : undefined,
    versions: versionNumbers(text(flags, 'versions')),
  });
  const maxVersions = whole(flags, 'maxVersions', '--max-versions');
  const named = text(flags, 'model');
  const source = text(flags, 'source');
  if (source !== undefined) return sourcePart(flags, source, rule, maxVersions);
  if (named === undefined && !rule && maxVersions === undefined) return before.model;
  if (named === undefined && !before.model)
    throw new AppError('invalid', 'which model? Give --model project/name (or -f with a specification)');
  const { number, ...model } = named === undefined ? { ...before.model!, number: undefined } : parseReference(named);
  if (number === 'latest')
    throw new AppError('invalid', '--model: name a version number, or leave it out to follow the newest');
  if (number !== undefined && (rule || maxVersions !== undefined))
    throw new AppError(
      'invalid',
      `--model ${named} serves one version alone; --tag, --drafts and --max-versions want a model without one`,
    );
  if (number !== undefined) return { ...model, version: number };
  const { version: _version, ...rest } = named === undefined ? before.model! : { ...model, ...ruleOf(before, model) };
  return {
    ...rest,
    ...(rule ? { select: { ...rest.select, ...rule } } : {}),
    ...(maxVersions === undefined ? {} : { maxVersions }),
  };
}

/** The rule stays when only the model's name is said again. */
const ruleOf = (before: Spec, model: { project: string; name: string }) =>
  before.model?.project === model.project && before.model.name === model.name
    ? given({ select: before.model.select, maxVersions: before.model.maxVersions })
    : undefined;

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

function parseInstance(value: string): { kind: 'cpu'; count: number } {
  const [kind, count = '1'] = value.split(':');
  if (!kind || !/^\d+$/.test(count))
    throw new AppError('invalid', `--instances: wants kind:count such as cpu:2, got "${value}"`);
  return { kind: kind.toLowerCase() as 'cpu', count: Number(count) };
}

function enginePart(flags: Flags, before: Spec, config: string | undefined): Part<'engine'> | undefined {
  const preferred = text(flags, 'preferredBatch');
  const batching = given({
    preferredSizes: preferred === undefined ? undefined : numbers(preferred, '--preferred-batch'),
    maxQueueDelayUs: whole(flags, 'batchDelayUs', '--batch-delay-us'),
  });
  const part = given({
    platform: text(flags, 'platform'),
    maxBatchSize: whole(flags, 'maxBatch', '--max-batch'),
    dynamicBatching: batching ? { ...before.engine?.dynamicBatching, ...batching } : undefined,
    instances: list(flags, 'instances')?.map(parseInstance),
    inputs: list(flags, 'input')?.map((value) => parseTensor(value, '--input')),
    outputs: list(flags, 'outputTensor')?.map((value) => parseTensor(value, '--output-tensor')),
    defaultModelFilename: text(flags, 'defaultModelFilename'),
    config,
  });
  return part ? { ...before.engine, ...part } : before.engine;
}

function processingPart(flags: Flags, before: Spec): Part<'processing'> | undefined {
  const builtin = text(flags, 'processing');
  const pairs = list(flags, 'option');
  if (builtin === undefined && !pairs) return before.processing;
  const options = Object.fromEntries(
    Object.entries(parsePairs(pairs, '--option')).map(([key, value]) => [key, looseValue(value)]),
  );
  if (builtin !== undefined && builtin !== before.processing?.builtin)
    return { builtin, ...(pairs ? { options } : {}) };
  if (!before.processing) throw new AppError('invalid', '--option: wants --processing NAME besides');
  return { ...before.processing, options: { ...before.processing.options, ...options } };
}

function trafficPart(flags: Flags, before: Spec): Part<'traffic'> | undefined {
  const pairs = list(flags, 'weight');
  const newest = text(flags, 'newestFirst');
  const weights = pairs
    ? Object.fromEntries(
        Object.entries(parsePairs(pairs, '--weight')).map(([key, value]) => [
          key,
          numbers(value, '--weight')[0] as number,
        ]),
      )
    : undefined;
  const newestFirst = newest === undefined ? undefined : numbers(newest, '--newest-first');
  const mode = (text(flags, 'traffic') ?? (weights || newestFirst ? 'weighted' : undefined)) as 'newest' | undefined;
  if (mode === undefined) return before.traffic;
  return given({ mode, weights, newestFirst, sticky: before.traffic?.sticky });
}

function limitsPart(flags: Flags, before: Spec): Part<'limits'> | undefined {
  const timeout = text(flags, 'timeout');
  const body = text(flags, 'maxBody');
  return given({
    ...before.limits,
    ...given({
      timeoutMs: timeout === undefined ? undefined : parseDuration(timeout, '--timeout'),
      maxBodyBytes: body === undefined ? undefined : parseSize(body, '--max-body'),
    }),
  });
}
