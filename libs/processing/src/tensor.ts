import { AppError, type DataType, type Tensor } from '@perch/contracts/plain';
import { toBrainHalves, toHalves } from './half.ts';

/** Views of a tensor are the machine's own order; the wire is little-endian, as is every machine Node runs on today. */
type NumberView =
  | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | Float32Array | Float64Array
  | BigInt64Array | BigUint64Array; // biome-ignore format: one row reads better
type ViewType<V> = { new (buffer: ArrayBufferLike, byteOffset: number, length: number): V; BYTES_PER_ELEMENT: number };

export const elementCount = (shape: readonly number[]): number => shape.reduce((product, dim) => product * dim, 1);

function checkCount(count: number, shape: readonly number[], datatype: DataType): void {
  if (count !== elementCount(shape))
    throw new AppError(
      'invalid',
      `${datatype} tensor: shape [${shape.join(', ')}] wants ${elementCount(shape)} values, got ${count}`,
    );
}

function tensorOf(datatype: DataType, view: NumberView, shape: readonly number[]): Tensor {
  checkCount(view.length, shape, datatype);
  return { datatype, shape, bytes: new Uint8Array(view.buffer, view.byteOffset, view.byteLength) };
}

/** `shape` includes the batch dimension; throws `invalid` when it does not hold exactly the values. */
type Maker<V> = (values: V | ArrayLike<number>, shape: readonly number[]) => Tensor;

/** Makes a constructor of tensors: a view of the right type is taken without a copy, other lists are copied. */
const numbersTo =
  <V extends NumberView>(
    datatype: DataType,
    type: { new (...args: never[]): V; from(values: ArrayLike<number>): V },
  ): Maker<V> =>
  (values, shape) =>
    tensorOf(datatype, values instanceof type ? values : type.from(values as ArrayLike<number>), shape);

export const int8: Maker<Int8Array> = numbersTo<Int8Array>('INT8', Int8Array);
export const int16: Maker<Int16Array> = numbersTo<Int16Array>('INT16', Int16Array);
export const int32: Maker<Int32Array> = numbersTo<Int32Array>('INT32', Int32Array);
export const uint8: Maker<Uint8Array> = numbersTo<Uint8Array>('UINT8', Uint8Array);
export const uint16: Maker<Uint16Array> = numbersTo<Uint16Array>('UINT16', Uint16Array);
export const uint32: Maker<Uint32Array> = numbersTo<Uint32Array>('UINT32', Uint32Array);
export const float32: Maker<Float32Array> = numbersTo<Float32Array>('FP32', Float32Array);
export const float64: Maker<Float64Array> = numbersTo<Float64Array>('FP64', Float64Array);
/** Takes numbers as well as bigints; a number must be whole. */
export const int64 = (values: BigInt64Array | ArrayLike<number | bigint>, shape: readonly number[]): Tensor =>
  tensorOf('INT64', values instanceof BigInt64Array ? values : BigInt64Array.from(values as number[], BigInt), shape);
export const uint64 = (values: BigUint64Array | ArrayLike<number | bigint>, shape: readonly number[]): Tensor =>
  tensorOf(
    'UINT64',
    values instanceof BigUint64Array ? values : BigUint64Array.from(values as number[], BigInt),
    shape,
  );
/** Rounded to the nearest, ties to even; a Uint16Array is taken as the bits that it holds. */
export const float16 = (values: ArrayLike<number>, shape: readonly number[]): Tensor =>
  tensorOf('FP16', values instanceof Uint16Array ? values : toHalves(values), shape);
export const bfloat16 = (values: ArrayLike<number>, shape: readonly number[]): Tensor =>
  tensorOf('BF16', values instanceof Uint16Array ? values : toBrainHalves(values), shape);
export const bool = (values: ArrayLike<boolean | number>, shape: readonly number[]): Tensor =>
  tensorOf(
    'BOOL',
    Uint8Array.from(values as ArrayLike<number>, (value) => (value ? 1 : 0)),
    shape,
  );

/** Texts as UTF-8, or bytes as they are; each element stands behind its 4-byte length. */
export function bytes(values: readonly (string | Uint8Array)[], shape: readonly number[]): Tensor {
  checkCount(values.length, shape, 'BYTES');
  const parts = values.map((value) => (typeof value === 'string' ? Buffer.from(value, 'utf8') : value));
  const out = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + 4 + part.length, 0));
  let at = 0;
  for (const part of parts) {
    at = out.writeUInt32LE(part.length, at);
    out.set(part, at);
    at += part.length;
  }
  return { datatype: 'BYTES', shape, bytes: out };
}

/** Throws `invalid` when the tensor is of another type or its bytes do not fill its shape. */
type View<V> = (tensor: Tensor) => V;

/** A view of the tensor's values: without a copy where its bytes are aligned, otherwise of a copy. */
const viewOf =
  <V extends NumberView>(datatypes: readonly DataType[], type: ViewType<V>): View<V> =>
  (tensor) => {
    if (!datatypes.includes(tensor.datatype))
      throw new AppError('invalid', `tensor is ${tensor.datatype}, wanted ${datatypes.join(' or ')}`);
    const size = type.BYTES_PER_ELEMENT;
    checkCount(tensor.bytes.length / size, tensor.shape, tensor.datatype);
    const aligned = tensor.bytes.byteOffset % size === 0 ? tensor.bytes : Uint8Array.prototype.slice.call(tensor.bytes);
    return new type(aligned.buffer, aligned.byteOffset, tensor.bytes.length / size);
  };

export const asInt8: View<Int8Array> = viewOf(['INT8'], Int8Array);
export const asInt16: View<Int16Array> = viewOf(['INT16'], Int16Array);
export const asInt32: View<Int32Array> = viewOf(['INT32'], Int32Array);
export const asInt64: View<BigInt64Array> = viewOf(['INT64'], BigInt64Array);
export const asUint8: View<Uint8Array> = viewOf(['UINT8', 'BOOL'], Uint8Array);
export const asUint16: View<Uint16Array> = viewOf(['UINT16', 'FP16', 'BF16'], Uint16Array);
export const asUint32: View<Uint32Array> = viewOf(['UINT32'], Uint32Array);
export const asUint64: View<BigUint64Array> = viewOf(['UINT64'], BigUint64Array);
export const asFloat32: View<Float32Array> = viewOf(['FP32'], Float32Array);
export const asFloat64: View<Float64Array> = viewOf(['FP64'], Float64Array);

/** The elements of a BYTES tensor, as views. Throws `invalid` when lengths and shape do not agree. */
export function asBytes(tensor: Tensor): Uint8Array[] {
  if (tensor.datatype !== 'BYTES') throw new AppError('invalid', `tensor is ${tensor.datatype}, wanted BYTES`);
  const { buffer, byteOffset, byteLength } = tensor.bytes;
  const lengths = new DataView(buffer, byteOffset, byteLength);
  const elements: Uint8Array[] = [];
  for (let at = 0; at < byteLength; ) {
    const end = at + 4 <= byteLength ? at + 4 + lengths.getUint32(at, true) : Number.POSITIVE_INFINITY;
    if (end > byteLength)
      throw new AppError('invalid', `BYTES tensor: element ${elements.length} ends beyond the tensor`);
    elements.push(tensor.bytes.subarray(at + 4, end));
    at = end;
  }
  checkCount(elements.length, tensor.shape, 'BYTES');
  return elements;
}
