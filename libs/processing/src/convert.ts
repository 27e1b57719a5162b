import { AppError, type DataType, type Tensor } from '@perch/contracts/plain';
import { kindOf } from './json-body.ts';
import type { FlatValues } from './nested.ts';
import {
  bfloat16,
  bool,
  bytes,
  float16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
} from './tensor.ts';

type Values = FlatValues['values'];
interface Whole {
  min: number;
  max: number;
  make: (values: Float64Array, shape: readonly number[]) => Tensor;
}

const wholes: Partial<Record<DataType, Whole>> = {
  INT8: { min: -128, max: 127, make: int8 },
  INT16: { min: -32_768, max: 32_767, make: int16 },
  INT32: { min: -2_147_483_648, max: 2_147_483_647, make: int32 },
  UINT8: { min: 0, max: 255, make: uint8 },
  UINT16: { min: 0, max: 65_535, make: uint16 },
  UINT32: { min: 0, max: 4_294_967_295, make: uint32 },
};

const wrong = (thing: string, index: number, wanted: string, got: string) =>
  new AppError('invalid', `${thing}: value ${index} is ${got}, wanted ${wanted}`);

/** Every value as a number; booleans count as 0 and 1 nowhere but for BOOL. */
function numbersOf(values: Values, thing: string, datatype: DataType): Float64Array {
  if (values instanceof Float64Array) return values;
  const numbers = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== 'number') throw wrong(thing, i, `a number for ${datatype}`, kindOf(value));
    numbers[i] = value;
  }
  return numbers;
}

function whole(
  values: Values,
  shape: readonly number[],
  thing: string,
  datatype: DataType,
  { min, max, make }: Whole,
): Tensor {
  const numbers = numbersOf(values, thing, datatype);
  for (let i = 0; i < numbers.length; i++) {
    const value = numbers[i]!;
    if (!(value >= min && value <= max && Math.trunc(value) === value))
      throw wrong(thing, i, `a whole number from ${min} to ${max} for ${datatype}`, String(value));
  }
  return make(numbers, shape);
}

const text64 = /^-?\d{1,20}$/;

/** Numbers that a double holds exactly, or longer ones written as text. */
function whole64(values: Values, shape: readonly number[], thing: string, datatype: 'INT64' | 'UINT64'): Tensor {
  const [min, max] = datatype === 'INT64' ? [-(2n ** 63n), 2n ** 63n - 1n] : [0n, 2n ** 64n - 1n];
  const out = new BigInt64Array(values.length);
  const halves = new Int32Array(out.buffer);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === 'number' && Number.isSafeInteger(value) && (value >= 0 || min < 0n)) {
      // Written by halves: a bigint for each of many values costs ten times as much.
      halves[2 * i] = value;
      halves[2 * i + 1] = Math.floor(value / 2 ** 32);
      continue;
    }
    const given = typeof value === 'number' ? String(value) : kindOf(value);
    if (typeof value !== 'string' || !text64.test(value))
      throw wrong(thing, i, `a whole number for ${datatype} (beyond 2^53 written as a string)`, given);
    const exact = BigInt(value);
    if (exact < min || exact > max)
      throw wrong(thing, i, `a whole number from ${min} to ${max} for ${datatype}`, value);
    out[i] = BigInt.asIntN(64, exact);
  }
  return datatype === 'INT64' ? int64(out, shape) : uint64(new BigUint64Array(out.buffer), shape);
}

function floating(values: Values, shape: readonly number[], thing: string, datatype: 'FP32' | 'FP64'): Tensor {
  const numbers = numbersOf(values, thing, datatype);
  const floats = datatype === 'FP32' ? new Float32Array(numbers) : numbers;
  for (let i = 0; i < floats.length; i++)
    if (!Number.isFinite(floats[i]!)) throw wrong(thing, i, `within the range of ${datatype}`, String(numbers[i]));
  // A Float64Array may be a view of the scanner's scratch, so FP64 is copied.
  return datatype === 'FP32' ? float32(floats as Float32Array, shape) : float64(Float64Array.from(floats), shape);
}

/** The first number that rounds to infinity: half a step above the greatest one. */
const beyondHalf = { FP16: 65_520, BF16: (2 - 2 ** -8) * 2 ** 127 };

function halves(values: Values, shape: readonly number[], thing: string, datatype: 'FP16' | 'BF16'): Tensor {
  const numbers = numbersOf(values, thing, datatype);
  for (let i = 0; i < numbers.length; i++)
    if (!(Math.abs(numbers[i]!) < beyondHalf[datatype]))
      throw wrong(thing, i, `within the range of ${datatype}`, String(numbers[i]));
  return datatype === 'FP16' ? float16(numbers, shape) : bfloat16(numbers, shape);
}

function booleans(values: Values, shape: readonly number[], thing: string): Tensor {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== 'boolean' && value !== 0 && value !== 1)
      throw wrong(thing, i, 'true, false, 1 or 0 for BOOL', typeof value === 'number' ? String(value) : kindOf(value));
  }
  return bool(values as ArrayLike<boolean | number>, shape);
}

/** Texts, or `{"b64": "…"}` for bytes that are no text. */
function texts(values: Values, shape: readonly number[], thing: string): Tensor {
  const elements = Array.from(values as ArrayLike<unknown>, (value, i) => {
    if (typeof value === 'string') return value;
    const b64 = (value as { b64?: unknown } | null)?.b64;
    if (typeof b64 === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(b64)) return Buffer.from(b64, 'base64');
    throw wrong(thing, i, 'a string or {"b64": "…"} for BYTES', kindOf(value));
  });
  return bytes(elements, shape);
}

/** Makes the tensor, or throws `invalid` that names `thing` and the first value at fault. */
export function toTensor(datatype: DataType, values: Values, shape: readonly number[], thing: string): Tensor {
  if (datatype === 'FP16' || datatype === 'BF16') return halves(values, shape, thing, datatype);
  const plain = wholes[datatype];
  if (plain) return whole(values, shape, thing, datatype, plain);
  if (datatype === 'FP32' || datatype === 'FP64') return floating(values, shape, thing, datatype);
  if (datatype === 'INT64' || datatype === 'UINT64') return whole64(values, shape, thing, datatype);
  if (datatype === 'BOOL') return booleans(values, shape, thing);
  return texts(values, shape, thing);
}
