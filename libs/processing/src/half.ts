import { fromHalfBits } from '@perch/contracts/plain';

/**
 * FP16 is IEEE 754 binary16 (1 sign, 5 exponent, 10 fraction bits); BF16 the upper half of a binary32. Values are rounded
 * to float32 and then to the nearest, ties to even, as NumPy and Triton's clients do with float32.
 */
const single = new Float32Array(1);
const bits = new Uint32Array(single.buffer);

/** The bits of a value below 2^16 behind `kept` bits, rounded to nearest, ties to even. */
function rounded(value: number, dropped: number): number {
  const up = value >>> dropped;
  const rest = value & ((1 << dropped) - 1);
  const middle = 1 << (dropped - 1);
  return rest > middle || (rest === middle && (up & 1) === 1) ? up + 1 : up;
}

function halfOf(value: number): number {
  single[0] = value;
  const whole = bits[0]!;
  const sign = (whole >>> 16) & 0x8000;
  const exponent = ((whole >>> 23) & 0xff) - 112;
  const fraction = whole & 0x7fffff;
  if (exponent === 143) return sign | 0x7c00 | (fraction === 0 ? 0 : 0x200);
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent < -10) return sign;
  if (exponent <= 0) return sign | rounded(fraction | 0x800000, 14 - exponent);
  // a fraction that rounds up to the next power of two carries into the exponent, which is right
  return sign | rounded((exponent << 23) | fraction, 13);
}

function brainHalfOf(value: number): number {
  single[0] = value;
  const whole = bits[0]!;
  if ((whole & 0x7fffffff) > 0x7f800000) return (whole >>> 16) | 0x40; // a NaN stays one when its low bits go
  return ((whole + 0x7fff + ((whole >>> 16) & 1)) >>> 16) & 0xffff;
}

/** 65,536 halves, once: reading a tensor is then one look-up a value. */
let floats: Float32Array | undefined;
const table = (): Float32Array => {
  floats ??= Float32Array.from({ length: 65_536 }, (_, half) => fromHalfBits('FP16', half));
  return floats;
};

export const toHalves = (values: ArrayLike<number>): Uint16Array => Uint16Array.from(values, halfOf);
export const toBrainHalves = (values: ArrayLike<number>): Uint16Array => Uint16Array.from(values, brainHalfOf);

export function fromHalves(halves: Uint16Array): Float32Array {
  const known = table();
  const out = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) out[i] = known[halves[i]!]!;
  return out;
}

export function fromBrainHalves(halves: Uint16Array): Float32Array {
  const out = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) out[i] = halves[i]! << 16;
  return new Float32Array(out.buffer);
}
