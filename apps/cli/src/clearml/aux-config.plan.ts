import { AppError, type EngineSpec } from '@perch/contracts';

type Value = string | number | boolean | Value[] | { [key: string]: Value };

/**
 * Pairs such as `platform=\"onnxruntime_onnx\"`, `max_batch_size=8`, `dynamic_batching.preferred_batch_size="[1,2]"`,
 * `input.0.format=FORMAT_NCHW` as engine settings: what a specification has a word for becomes that, the rest is
 * written as configuration text.
 */
export function planAuxConfig(pairs: readonly string[]): EngineSpec {
  const tree: Record<string, Value> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const key = pair.slice(0, at).replace(/[\\"'\s]/g, '');
    if (at < 1 || !/^[A-Za-z_][\w.]*$/.test(key))
      throw new AppError('invalid', `--aux-config: wants key=value pairs or one config.pbtxt file, got "${pair}"`);
    put(tree, key.split('.'), parseValue(pair.slice(at + 1)), pair);
  }
  return engineOf(tree);
}

/** Stray backslashes are dropped; what was quoted stays a text, enums and numbers are themselves. */
function parseValue(raw: string): Value {
  const text = raw.replace(/\\+/g, '').trim();
  const quoted = /^(["'])(.*)\1$/s.exec(text);
  if (quoted) {
    const inner = (quoted[2] as string).trim();
    // `"[1,2]"` is a list that was quoted for the shell.
    return /^[[{]/.test(inner) ? parseValue(inner) : { '': inner };
  }
  if (/^\[.*\]$/s.test(text))
    return text
      .slice(1, -1)
      .split(',')
      .filter((part) => part.trim() !== '')
      .map(parseValue);
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (text === 'true' || text === 'false') return text === 'true';
  return text;
}

/** A quoted text is kept apart from an enum until it is written: { '': text }. */
const quotedText = (value: Value | undefined): string | undefined => {
  if (typeof value === 'string') return value;
  return typeof value === 'object' && !Array.isArray(value) && typeof value[''] === 'string' ? value[''] : undefined;
};

function put(tree: Record<string, Value>, path: readonly string[], value: Value, pair: string): void {
  const [key, ...rest] = path as [string, ...string[]];
  if (rest.length === 0) {
    tree[key] = value;
    return;
  }
  const below = tree[key] ?? {};
  if (typeof below !== 'object' || Array.isArray(below))
    throw new AppError('invalid', `--aux-config: "${pair}" goes into ${key}, which another pair gave a value`);
  tree[key] = below;
  put(below, rest, value, pair);
}

function engineOf(tree: Record<string, Value>): EngineSpec {
  const engine: EngineSpec = {};
  const {
    platform,
    backend,
    default_model_filename: file,
    max_batch_size: batch,
    dynamic_batching: batching,
    ...rest
  } = tree;
  const named = quotedText(platform) ?? platformOf(quotedText(backend));
  if (named !== undefined) engine.platform = named;
  if (quotedText(file) !== undefined) engine.defaultModelFilename = quotedText(file) as string;
  if (batch !== undefined) engine.maxBatchSize = wholeNumber(batch, 'max_batch_size');
  const left = { ...rest, ...dynamicBatching(engine, batching) };
  if (Object.keys(left).length > 0) engine.config = `${pbtxt(left).join('\n')}\n`;
  return engine;
}

/** Triton's name of a backend as the platform that means it. */
const platformOf = (backend: string | undefined): string | undefined =>
  ({ onnxruntime: 'onnxruntime_onnx', tensorrt: 'tensorrt_plan', pytorch: 'pytorch_libtorch' })[backend ?? ''] ??
  backend;

function wholeNumber(value: Value, key: string): number {
  const number = typeof value === 'number' ? value : Number(quotedText(value) ?? Number.NaN);
  if (!Number.isInteger(number) || number < 0)
    throw new AppError('invalid', `--aux-config ${key}: wants a whole number`);
  return number;
}

/** Fills in what a specification has words for; returns what it has none for. */
function dynamicBatching(engine: EngineSpec, value: Value | undefined): Record<string, Value> {
  if (value === undefined || typeof value !== 'object' || Array.isArray(value))
    return value === undefined ? {} : { dynamic_batching: {} };
  const {
    preferred_batch_size: sizes,
    max_queue_delay_microseconds: delay,
    preserve_ordering: ordered,
    ...rest
  } = value;
  if (Object.keys(rest).length > 0) return { dynamic_batching: value };
  engine.dynamicBatching = {
    ...(sizes === undefined
      ? {}
      : { preferredSizes: [sizes].flat().map((size) => wholeNumber(size, 'preferred_batch_size')) }),
    ...(delay === undefined ? {} : { maxQueueDelayUs: wholeNumber(delay, 'max_queue_delay_microseconds') }),
    ...(typeof ordered === 'boolean' ? { preserveOrdering: ordered } : {}),
  };
  return {};
}

const isList = (value: Value): value is { [key: string]: Value } =>
  typeof value === 'object' &&
  !Array.isArray(value) &&
  Object.keys(value).length > 0 &&
  Object.keys(value).every((key) => /^\d+$/.test(key));

/** The text of a config.pbtxt; keys 0, 1, … are the elements of a repeated message. */
function pbtxt(tree: Record<string, Value>, indent = ''): string[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    if (isList(value)) return Object.values(value).flatMap((one) => message(key, one, indent));
    return message(key, value, indent);
  });
}

function message(key: string, value: Value, indent: string): string[] {
  const text = typeof value === 'object' && !Array.isArray(value) ? value[''] : undefined;
  if (typeof text === 'string') return [`${indent}${key}: ${JSON.stringify(text)}`];
  if (Array.isArray(value)) return [`${indent}${key}: [ ${value.map((one) => scalar(one)).join(', ')} ]`];
  if (typeof value === 'object') return [`${indent}${key} {`, ...pbtxt(value, `${indent}  `), `${indent}}`];
  return [`${indent}${key}: ${scalar(value)}`];
}

function scalar(value: Value): string {
  const text = typeof value === 'object' && !Array.isArray(value) ? value[''] : undefined;
  return typeof text === 'string' ? JSON.stringify(text) : String(value);
}
