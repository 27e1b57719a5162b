import { isUtf8 } from 'node:buffer';
import { AppError, type DataType, type TensorSpec } from '@perch/contracts';
import { nestedOf, tensor } from '@perch/processing';
import { type HttpInfer, inferAnswer, type NamedTensor, readJsonInfer } from '@perch/triton/inference';
import type { HttpExchange, HttpReply } from './http1/index.ts';

/** The tensors that a module declares in place of its model's. */
export interface DeclaredTensors {
  inputs: readonly TensorSpec[];
  outputs: readonly TensorSpec[];
}

/** Reads an infer request of the protocol. Throws `invalid` for what is none, whatever words the protocol has for it. */
export function readInfer({ head, body }: Pick<HttpExchange, 'head' | 'body'>, endpoint: string): HttpInfer {
  const whole = body.length === 1 ? body[0]! : Buffer.concat(body);
  const text = head.headers['inference-header-content-length'];
  const length = text === undefined ? whole.length : Number(text);
  if (!Number.isSafeInteger(length) || length < 0 || length > whole.length)
    throw new AppError('invalid', 'header inference-header-content-length is no length within the body');
  if (head.headers['content-encoding'] !== undefined)
    throw new AppError(
      'invalid',
      `endpoint ${endpoint} is answered by a module: send its body without content-encoding`,
    );
  try {
    return readJsonInfer(endpoint, undefined, whole.subarray(0, length), whole.subarray(length));
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    throw new AppError('invalid', cause.message, { cause });
  }
}

/**
 * The body that a module gets for tensors: one object, values by input name, nested as the tensor is; a tensor of one
 * element is that element. BYTES are strings where they are UTF-8, else `{"b64": "…"}`; 64-bit integers beyond 2^53 are
 * strings. Throws `invalid` for inputs that the module does not declare, lacks or declares otherwise.
 */
export function bodyOfTensors(inputs: readonly NamedTensor[], declared: readonly TensorSpec[]): Buffer {
  const specs = new Map(declared.map((spec) => [spec.name, spec]));
  const body = new Map<string, unknown>();
  for (const { name, datatype, shape, bytes } of inputs) {
    const spec = specs.get(name);
    const thing = `input "${name.slice(0, 64)}"`;
    if (!spec)
      throw new AppError('invalid', `there is no ${thing}, wanted ${declared.map((one) => one.name).join(', ')}`);
    if (datatype !== spec.datatype) throw new AppError('invalid', `${thing} is ${datatype}, wanted ${spec.datatype}`);
    if (
      shape.length !== spec.shape.length ||
      shape.some((size, at) => spec.shape[at] !== -1 && spec.shape[at] !== size)
    )
      throw new AppError('invalid', `${thing} has shape [${shape.join(', ')}], wanted [${spec.shape.join(', ')}]`);
    const value = plain(nestedOf({ datatype: datatype as DataType, shape, bytes }));
    body.set(name, shape.every((size) => size === 1) ? innermost(value) : value);
  }
  const missing = declared.find(({ name, optional }) => optional !== true && !body.has(name));
  if (missing) throw new AppError('invalid', `input "${missing.name}" is missing`);
  return Buffer.from(JSON.stringify(Object.fromEntries(body)));
}

const innermost = (value: unknown): unknown => (Array.isArray(value) ? innermost(value[0]) : value);

/** Values of a tensor as JSON has them. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (!(value instanceof Uint8Array)) return value;
  const view = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return isUtf8(view) ? view.toString('utf8') : { b64: view.toString('base64') };
}

/**
 * The reply's value as the tensors that a module declares, in the form that was asked for. An object gives each output by
 * its name; any other value is that of the only output. What a BYTES output gets besides text becomes JSON text. Throws
 * `module` where the value does not suit.
 */
export function replyOfValue(
  value: unknown,
  declared: readonly TensorSpec[],
  asked: HttpInfer,
  names: ShownModel,
): HttpReply {
  const wanted = asked.request.outputs?.map(({ name }) => name);
  const unknown = wanted?.find((name) => !declared.some((spec) => spec.name === name));
  if (unknown !== undefined) throw new AppError('invalid', `there is no output "${unknown.slice(0, 64)}"`);
  const outputs = declared
    .filter(({ name }) => wanted === undefined || wanted.includes(name))
    .map((spec) => outputOf(spec, valueFor(spec, value, declared.length === 1)));
  const { text, binary } = inferAnswer(
    { ...(asked.request.id === undefined ? {} : { id: asked.request.id }), modelName: names.endpoint, modelVersion: String(names.version), outputs },
    asked.isBinary,
  ); // biome-ignore format: one answer
  const head = Buffer.from(text);
  const isBinary = binary.length > 0;
  return {
    status: 200,
    contentType: isBinary ? 'application/octet-stream' : 'application/json',
    headerLines: isBinary ? `inference-header-content-length: ${head.length}\r\n` : '',
    body: [head, ...binary],
  };
}

export interface ShownModel {
  endpoint: string;
  version: number;
}

function valueFor({ name }: TensorSpec, value: unknown, isOnly: boolean): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (isObject && Object.hasOwn(value, name)) return (value as Record<string, unknown>)[name];
  if (isOnly) return value;
  throw new AppError('module', `the module's reply has no output "${name}", which it declares`);
}

function outputOf({ name, datatype, shape }: TensorSpec, value: unknown): NamedTensor {
  try {
    const elements = datatype === 'BYTES' ? textElements(value, shape.length) : value;
    const made =
      shape.includes(-1) || Array.isArray(elements)
        ? fitted(datatype, elements, shape)
        : tensor(datatype, [elements], shape);
    return { name, datatype, shape: [...made.shape], bytes: made.bytes };
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    throw new AppError('module', `the module's output "${name}": ${cause.message}`, { cause });
  }
}

/** A bare value, or one level of lists too few, gets dimensions of 1 in front, as the declaration has them. */
function fitted(datatype: DataType, value: unknown, shape: readonly number[]) {
  const made = tensor(datatype, value);
  const lead = shape.length - made.shape.length;
  const dims = lead > 0 ? [...Array(lead).fill(1), ...made.shape] : made.shape;
  if (dims.length !== shape.length || dims.some((size, at) => shape[at] !== -1 && shape[at] !== size))
    throw new AppError('invalid', `shape [${made.shape.join(', ')}], wanted [${shape.join(', ')}]`);
  return { ...made, shape: dims };
}

/** Texts as they are, anything else as JSON text, down to the depth of the declared shape. */
function textElements(value: unknown, depth: number): unknown {
  if (Array.isArray(value) && depth > 0) return value.map((one) => textElements(one, depth - 1));
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
