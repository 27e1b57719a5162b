/**
 * The 16-bit floating forms: sign, exponent, fraction. FP16 is IEEE 754 binary16 (5 bits of exponent), BF16 the upper half
 * of an FP32 (8 bits).
 */
export const halfTypes = ['FP16', 'BF16'] as const;
export type HalfType = (typeof halfTypes)[number];
export const isHalfType = (datatype: string): datatype is HalfType => datatype === 'FP16' || datatype === 'BF16';

/** `least`: the exponent of the smallest normal number. `infinity`: its bits. */
const forms: Record<HalfType, { fractionBits: number; least: number; infinity: number }> = {
  FP16: { fractionBits: 10, least: -14, infinity: 0x7c00 },
  BF16: { fractionBits: 7, least: -126, infinity: 0x7f80 },
};

function roundToEven(value: number): number {
  const rounded = Math.round(value);
  return value % 1 === 0.5 && rounded % 2 === 1 ? rounded - 1 : rounded;
}

/** The largest whole e with 2^e <= value, which is positive and finite. */
function exponentOf(value: number): number {
  const near = Math.floor(Math.log2(value));
  if (2 ** near > value) return near - 1;
  return 2 ** (near + 1) <= value ? near + 1 : near;
}

/** The nearest number of the form, ties to even; what is too large is an infinity, NaN stays NaN. */
export function toHalfBits(datatype: HalfType, value: number): number {
  const { fractionBits, least, infinity } = forms[datatype];
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return infinity | 1;
  if (size === 0) return sign;
  if (size === Number.POSITIVE_INFINITY) return sign | infinity;
  const exponent = Math.max(exponentOf(size), least);
  const steps = roundToEven(size / 2 ** (exponent - fractionBits));
  return sign | Math.min(infinity, (exponent - least) * 2 ** fractionBits + steps); // steps hold the implied bit
}

export function fromHalfBits(datatype: HalfType, bits: number): number {
  const { fractionBits, least, infinity } = forms[datatype];
  const sign = bits & 0x8000 ? -1 : 1;
  const size = bits & 0x7fff;
  if (size >= infinity) return size === infinity ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  const exponent = size >> fractionBits;
  const fraction = size & (2 ** fractionBits - 1);
  if (exponent === 0) return sign * fraction * 2 ** (least - fractionBits);
  return sign * (fraction + 2 ** fractionBits) * 2 ** (exponent - 1 + least - fractionBits);
}

/** The nearest number that a tensor of the type can hold. */
export const roundToHalf = (datatype: HalfType, value: number): number =>
  fromHalfBits(datatype, toHalfBits(datatype, value));

/** A tensor's binary form: little-endian, two bytes a value. */
export function toHalfBytes(datatype: HalfType, values: readonly number[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(values.length * 2));
  for (const [at, value] of values.entries()) bytes.setUint16(at * 2, toHalfBits(datatype, value), true);
  return new Uint8Array(bytes.buffer);
}

/** An odd byte at the end is left out. */
export function fromHalfBytes(datatype: HalfType, bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: Math.floor(bytes.length / 2) }, (_, at) =>
    fromHalfBits(datatype, view.getUint16(at * 2, true)),
  );
}
