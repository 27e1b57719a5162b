import { type DataType, elementBytes } from '@perch/contracts';
import { fromBrainHalves, fromHalves } from '@perch/processing';

/** Numbers of a tensor by index; 64-bit whole numbers are rounded to doubles. */
export type Values = ArrayLike<number>;

type View = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | Float32Array | Float64Array;
type ViewType = { new (buffer: ArrayBufferLike, at: number, length: number): View };
const views: Partial<Record<string, ViewType>> = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

/** Replies place their first tensor on a boundary; others are copied, which is a memcpy. */
const aligned = (bytes: Uint8Array, size: number): Uint8Array =>
  bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);

/** A view of the element type; surplus bytes at the end are left out. Undefined for text and 64-bit whole numbers. */
function viewOf(datatype: string, bytes: Uint8Array): View | undefined {
  const type = views[datatype];
  if (!type) return undefined;
  const size = elementBytes[datatype as DataType];
  const { buffer, byteOffset } = aligned(bytes, size);
  return new type(buffer, byteOffset, Math.floor(bytes.length / size));
}

export const isFloating = (datatype: string): boolean =>
  datatype === 'FP32' || datatype === 'FP16' || datatype === 'FP64' || datatype === 'BF16';

/** Exponent bits of the 16-bit forms: all set means an infinity or no number. */
const halfExponent = { FP16: 0x7c00, BF16: 0x7f80 };

function halvesBroken(bits: ArrayLike<number>, exponent: number): boolean {
  const minusInfinity = exponent | 0x8000;
  for (let i = 0; i < bits.length; i += 1) {
    const value = bits[i]!;
    if ((value & exponent) === exponent && value !== minusInfinity) return true;
  }
  return false;
}

/**
 * Whether floating values hold one that no model means to answer: NaN or +∞. A −∞ is let pass, since masked logits are
 * −∞ on purpose. False for other types. About 1 ns a value, on the bytes as they came.
 */
export function hasBrokenNumber(datatype: string, bytes: Uint8Array): boolean {
  if (!isFloating(datatype)) return false;
  const values = viewOf(datatype, bytes)!;
  if (datatype === 'FP16' || datatype === 'BF16') return halvesBroken(values, halfExponent[datatype]);
  for (let i = 0; i < values.length; i += 1) if (!(values[i]! < Number.POSITIVE_INFINITY)) return true;
  return false;
}

/** The numbers of a tensor in its binary form; undefined for text. */
export function valuesOf(datatype: string, bytes: Uint8Array): Values | undefined {
  if (datatype === 'INT64' || datatype === 'UINT64') {
    const { buffer, byteOffset } = aligned(bytes, 8);
    const type = datatype === 'INT64' ? BigInt64Array : BigUint64Array;
    return Float64Array.from(new type(buffer as ArrayBuffer, byteOffset, Math.floor(bytes.length / 8)), Number);
  }
  const view = viewOf(datatype, bytes);
  if (view && datatype === 'FP16') return fromHalves(view as Uint16Array);
  if (view && datatype === 'BF16') return fromBrainHalves(view as Uint16Array);
  return view;
}
