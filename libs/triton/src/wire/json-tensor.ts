import { AppError, type DataType } from '@perch/contracts';
import { bytesOfElements } from './typed-contents.ts';

type NumberView = { [index: number]: number; length: number; buffer: ArrayBufferLike; byteOffset: number };
type Construct<T> = { new (length: number): T; new (buffer: ArrayBufferLike, at: number, length: number): T };

const numberViews: Partial<Record<DataType, Construct<NumberView>>> = {
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

const ranges: Partial<Record<DataType, readonly [number, number]>> = {
  UINT8: [0, 0xff],
  UINT16: [0, 0xffff],
  UINT32: [0, 0xffffffff],
  INT8: [-0x80, 0x7f],
  INT16: [-0x8000, 0x7fff],
  INT32: [-0x80000000, 0x7fffffff],
  INT64: [-(2 ** 63), 2 ** 63],
  UINT64: [0, 2 ** 64],
};

const fault = (name: string, words: string): AppError =>
  new AppError('invalid', `Unable to parse 'data' of '${name}': ${words}`);

export const elementCount = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/** Walks flat or nested data row-major; returns how many elements it saw. */
function walk(data: unknown, at: number, put: (element: unknown, index: number) => void): number {
  if (!Array.isArray(data)) {
    put(data, at);
    return at + 1;
  }
  let next = at;
  for (const element of data) {
    if (Array.isArray(element)) next = walk(element, next, put);
    else put(element, next++);
  }
  return next;
}

function countOf(data: unknown[]): number {
  let count = 0;
  for (const element of data) count += Array.isArray(element) ? countOf(element) : 1;
  return count;
}

function bytesOfStrings(data: unknown[], name: string): Uint8Array {
  const elements: Uint8Array[] = [];
  walk(data, 0, (element) => {
    if (typeof element !== 'string') throw fault(name, `wanted strings, got ${typeof element}`);
    elements.push(Buffer.from(element));
  });
  return bytesOfElements(elements);
}

function bytesOfNumbers(datatype: DataType, count: number, data: unknown[], name: string): Uint8Array {
  const view = new numberViews[datatype]!(count);
  const range = ranges[datatype];
  walk(data, 0, (element, index) => {
    if (typeof element !== 'number') throw fault(name, `wanted numbers, got ${typeof element}`);
    if (range && (!Number.isInteger(element) || element < range[0] || element > range[1]))
      throw fault(name, `${element} is not a value of ${datatype}`);
    view[index] = element;
  });
  return new Uint8Array(view.buffer);
}

function bytesOfWide(datatype: 'INT64' | 'UINT64', count: number, data: unknown[], name: string): Uint8Array {
  const view = new (datatype === 'INT64' ? BigInt64Array : BigUint64Array)(count);
  walk(data, 0, (element, index) => {
    if (typeof element !== 'number') throw fault(name, `wanted numbers, got ${typeof element}`);
    const [low, high] = ranges[datatype]!;
    if (!Number.isInteger(element) || element < low || element >= high)
      throw fault(name, `${element} is not a value of ${datatype}`);
    view[index] = BigInt(element);
  });
  return new Uint8Array(view.buffer);
}

function bytesOfBooleans(count: number, data: unknown[], name: string): Uint8Array {
  const bytes = new Uint8Array(count);
  walk(data, 0, (element, index) => {
    if (typeof element !== 'boolean' && element !== 0 && element !== 1)
      throw fault(name, `wanted true or false, got ${typeof element}`);
    bytes[index] = element ? 1 : 0;
  });
  return bytes;
}

/**
 * Binary form of JSON `data` (flat or nested to the shape). Throws `invalid` with Triton's beginning of the sentence when
 * it does not fit the shape or the type; FP16 and BF16 have no JSON form. 64-bit integers are exact up to 2^53.
 */
export function bytesOfJson(datatype: string, shape: readonly number[], data: unknown, name: string): Uint8Array {
  if (datatype === 'FP16' || datatype === 'BF16')
    throw new AppError(
      'invalid',
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for input '${name}'`,
    );
  if (!Array.isArray(data)) throw fault(name, 'wanted an array');
  const wanted = elementCount(shape);
  const got = countOf(data);
  if (got !== wanted) throw fault(name, `shape [${shape.join(',')}] wants ${wanted} elements, got ${got}`);
  if (datatype === 'BYTES') return bytesOfStrings(data, name);
  if (datatype === 'BOOL') return bytesOfBooleans(got, data, name);
  if (datatype === 'INT64' || datatype === 'UINT64') return bytesOfWide(datatype, got, data, name);
  if (!numberViews[datatype as DataType]) throw fault(name, `unknown datatype '${datatype}'`);
  return bytesOfNumbers(datatype as DataType, got, data, name);
}

/** Elements of a BYTES tensor as views; throws `invalid` when a length runs past the end. */
export function elementsOf(bytes: Uint8Array, name: string): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const elements: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.length) {
    const length = at + 4 <= bytes.length ? view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    if (at + 4 + length > bytes.length)
      throw new AppError('invalid', `incomplete string data for '${name}': an element's length runs past the end`);
    elements.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return elements;
}

/** A view of the element type; the bytes are copied only when they do not lie on its boundary. */
function viewOn<T>(construct: Construct<T>, bytes: Uint8Array, elementSize: number): T {
  // A Buffer's own slice would be a view again.
  const aligned = bytes.byteOffset % elementSize === 0 ? bytes : new Uint8Array(bytes);
  return new construct(aligned.buffer, aligned.byteOffset, bytes.length / elementSize);
}

const numberText = (value: number): string =>
  Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';

/**
 * Text of the flat JSON `data` of a tensor. NaN and infinities are written bare, as Triton does, which strict readers of
 * JSON refuse. Throws `invalid` for FP16 and BF16.
 */
export function jsonTextOf(datatype: string, bytes: Uint8Array, name: string): string {
  if (datatype === 'FP16' || datatype === 'BF16')
    throw new AppError(
      'invalid',
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output '${name}'`,
    );
  if (datatype === 'BYTES')
    return JSON.stringify(elementsOf(bytes, name).map((element) => Buffer.from(element).toString()));
  if (datatype === 'BOOL') return `[${Array.from(bytes, (byte) => byte !== 0).join(',')}]`;
  if (datatype === 'INT64' || datatype === 'UINT64') {
    const construct = (datatype === 'INT64' ? BigInt64Array : BigUint64Array) as unknown as Construct<NumberView>;
    return `[${(viewOn(construct, bytes, 8) as unknown as BigInt64Array).join(',')}]`;
  }
  const construct = numberViews[datatype as DataType];
  if (!construct) throw new AppError('invalid', `unknown datatype '${datatype}' of output '${name}'`);
  const size = (construct as unknown as { BYTES_PER_ELEMENT: number }).BYTES_PER_ELEMENT;
  const view = viewOn(construct, bytes, size);
  let text = '';
  for (let i = 0; i < view.length; i += 1) text += (i === 0 ? '' : ',') + numberText(view[i]!);
  return `[${text}]`;
}
