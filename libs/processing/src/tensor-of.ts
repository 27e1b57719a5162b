import { AppError, type DataType, elementBytes, type Tensor } from '@perch/contracts/plain';
import { toTensor } from './convert.ts';
import { fromBrainHalves, fromHalves } from './half.ts';
import { flatten } from './nested.ts';
import {
  asBytes, asFloat32, asFloat64, asInt8, asInt16, asInt32, asInt64, asUint8, asUint16, asUint32, asUint64, bfloat16, bytes,
  elementCount, float16,
} from './tensor.ts'; // biome-ignore format: one list

type TypedArray = ArrayBufferView & ArrayLike<number | bigint> & { BYTES_PER_ELEMENT: number };
const isTyped = (values: unknown): values is TypedArray => ArrayBuffer.isView(values) && !(values instanceof DataView);

/** Which typed array holds a data type's elements as they are. */
const holds: Partial<Record<DataType, string>> = {
  INT8: 'Int8Array', UINT8: 'Uint8Array', INT16: 'Int16Array', UINT16: 'Uint16Array', INT32: 'Int32Array',
  UINT32: 'Uint32Array', INT64: 'BigInt64Array', UINT64: 'BigUint64Array', FP32: 'Float32Array', FP64: 'Float64Array',
}; // biome-ignore format: one row reads better

/**
 * A tensor of any data type from what JavaScript has: nested lists, a bare value, or a typed array with its `shape`. A
 * typed array that holds exactly this type is taken without a copy. Numbers are checked against the type's range, and
 * must be whole for whole types; 64-bit ones beyond 2^53 are bigints or strings; BOOL takes true, false, 1, 0; BYTES takes
 * strings (as UTF-8) and Uint8Arrays; FP16 and BF16 round to the nearest.
 *
 * `shape`: of a flat list; left out, the nesting tells it. Throws `invalid` that names the first value at fault, ragged
 * lists, or a shape that does not hold the values.
 *
 * @example tensor('FP32', [[1, 2], [3, 4]])                 // shape [2, 2]
 * @example tensor('INT64', Int32Array.of(1, 2, 3), [1, 3])
 * @example tensor('BYTES', ['good', 'bad'], [2, 1])
 */
export function tensor(datatype: DataType, values: unknown, shape?: readonly number[]): Tensor {
  if (isTyped(values)) return typed(datatype, values, shape ?? [values.length]);
  const flat = flatten(values, datatype);
  const dims = shape ?? flat.shape;
  if (flat.values.length !== elementCount(dims))
    throw new AppError('invalid', `${datatype} tensor: shape [${dims.join(', ')}] wants ${elementCount(dims)} values, got ${flat.values.length}`); // biome-ignore format: one sentence
  const elements = flat.values as unknown[];
  if (datatype === 'BYTES' && elements.some((one) => one instanceof Uint8Array))
    return bytes(elements as (string | Uint8Array)[], dims);
  const wide = datatype === 'INT64' || datatype === 'UINT64';
  return toTensor(datatype, wide ? elements.map(bigintAsText) : flat.values, dims, `${datatype} tensor`);
}

const bigintAsText = (value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

function typed(datatype: DataType, values: TypedArray, shape: readonly number[]): Tensor {
  if (datatype === 'FP16' && !(values instanceof Uint16Array)) return float16(values as ArrayLike<number>, shape);
  if (datatype === 'BF16' && !(values instanceof Uint16Array)) return bfloat16(values as ArrayLike<number>, shape);
  const exact =
    values.constructor.name === holds[datatype] || elementBytes[datatype] === 2 || isByteList(datatype, values);
  if (!exact) return tensor(datatype, Array.from(values as ArrayLike<number>), shape);
  if (values.length !== elementCount(shape))
    throw new AppError('invalid', `${datatype} tensor: shape [${shape.join(', ')}] wants ${elementCount(shape)} values, got ${values.length}`); // biome-ignore format: one sentence
  return { datatype, shape, bytes: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) };
}

/** A Buffer is a Uint8Array under another name. */
const isByteList = (datatype: DataType, values: TypedArray) => datatype === 'UINT8' && values instanceof Uint8Array;

/** The values of a floating-point tensor (FP16, BF16, FP32, FP64) as float32; FP32 without a copy where it is aligned. Throws `invalid` for other types. */
export function asFloats(source: Tensor): Float32Array {
  if (source.datatype === 'FP16') return fromHalves(asUint16(source));
  if (source.datatype === 'BF16') return fromBrainHalves(asUint16(source));
  return source.datatype === 'FP64' ? Float32Array.from(asFloat64(source)) : asFloat32(source);
}

const views: Record<DataType, (source: Tensor) => ArrayLike<unknown>> = {
  BOOL: (source) => Array.from(asUint8(source), Boolean),
  INT8: asInt8, INT16: asInt16, INT32: asInt32, INT64: asInt64, UINT8: asUint8, UINT16: asUint16, UINT32: asUint32,
  UINT64: asUint64, FP16: asFloats, BF16: asFloats, FP32: asFloat32, FP64: asFloat64, BYTES: asBytes,
}; // biome-ignore format: one row reads better

/**
 * The values as nested lists of the tensor's shape (a bare value for shape []): numbers, bigints for 64-bit types, booleans,
 * Uint8Arrays for BYTES. For looking at small tensors; big ones are read by `asFloats`, `asInt64`, ….
 */
export function nestedOf(source: Tensor): unknown {
  const flat = views[source.datatype](source);
  let at = 0;
  const level = (depth: number): unknown =>
    depth === source.shape.length ? flat[at++] : Array.from({ length: source.shape[depth]! }, () => level(depth + 1));
  return level(0);
}
