import { powersOfTen } from './json-text.ts';

/** Numbers of a nested JSON list in row-major order. `values` is a view of shared memory: it holds until the next scan. */
export class ScannedNumbers {
  readonly values: Float64Array;
  readonly shape: number[];
  /** Place behind the closing bracket. */
  readonly end: number;

  constructor(values: Float64Array, shape: number[], end: number) {
    this.values = values;
    this.shape = shape;
    this.end = end;
  }
}

/**
 * `double`: each value is what JSON.parse gives. `single`: each value rounds to the same float32 as what JSON.parse gives,
 * and long digits cost half.
 */
export type Precision = 'double' | 'single';

const open = 91;
const close = 93;
const comma = 44;
const minus = 45;
const plus = 43;
const point = 46;
const zero = 48;
const maxRank = 16;
/** More digits than a double holds exactly; up to `looseDigits` the sum is off by less than `doubt` of itself. */
const exactDigits = 15;
const looseDigits = 19;
const doubt = 2 ** -49;

/** Grown to the largest body seen, up to a bound, so that a request does not pay for fresh pages. */
let scratch = new Float64Array(8192);
const keptElements = 2 ** 20;
let used = 0;

/** Forgets the values of earlier scans; call before the first scan of a body. */
export function startScan(): void {
  used = 0;
  if (scratch.length > keptElements) scratch = new Float64Array(8192);
}

function grow(): void {
  const larger = new Float64Array(scratch.length * 2);
  larger.set(scratch);
  scratch = larger;
}

/** White space of JSON. */
export const isSpace = (byte: number): boolean => byte === 32 || byte === 10 || byte === 13 || byte === 9;

/** Result of the last `readNumber`: the value, NaN for what is no JSON number; the place behind it. */
let numberEnd = 0;

/** Reads one number of JSON's grammar at `at`; the byte after it must exist. */
function readNumber(text: Buffer, start: number, precision: Precision): number {
  let at = start;
  const negative = text[at] === minus;
  if (negative) at++;
  const first = at;
  let digit = text[at]! - zero;
  if (digit < 0 || digit > 9) return Number.NaN;
  let sum = digit;
  digit = text[++at]! - zero;
  if (sum === 0 && digit >= 0 && digit <= 9) return Number.NaN;
  while (digit >= 0 && digit <= 9) {
    sum = sum * 10 + digit;
    digit = text[++at]! - zero;
  }
  let digits = at - first;
  let places = 0;
  if (text[at] === point) {
    const fraction = ++at;
    digit = text[at]! - zero;
    while (digit >= 0 && digit <= 9) {
      sum = sum * 10 + digit;
      digit = text[++at]! - zero;
    }
    places = at - fraction;
    digits += places;
    if (places === 0) return Number.NaN;
  }
  if (digits <= exactDigits && (text[at]! | 32) !== 101) {
    numberEnd = at;
    const size = sum / powersOfTen[places]!;
    return negative ? -size : size;
  }
  let power = -places;
  if ((text[at]! | 32) === 101) {
    let sign = 1;
    if (text[++at] === minus || text[at] === plus) sign = text[at++] === minus ? -1 : 1;
    const from = at;
    let exponent = 0;
    for (digit = text[at]! - zero; digit >= 0 && digit <= 9; digit = text[++at]! - zero)
      exponent = exponent * 10 + digit;
    if (at === from) return Number.NaN;
    power += sign * exponent;
  }
  numberEnd = at;
  return roundNumber(text, start, { sum, digits, power, negative, precision });
}

interface Parts {
  sum: number;
  digits: number;
  power: number;
  negative: boolean;
  precision: Precision;
}

/** One correctly rounded division or product where both sides are exact; else the engine's own reading of the text. */
function roundNumber(text: Buffer, start: number, { sum, digits, power, negative, precision }: Parts): number {
  if (digits <= looseDigits && power >= -22 && power <= 22) {
    const size = power < 0 ? sum / powersOfTen[-power]! : sum * powersOfTen[power]!;
    const sure =
      digits <= exactDigits ||
      (precision === 'single' && Math.fround(size * (1 - doubt)) === Math.fround(size * (1 + doubt)));
    if (sure) return negative ? -size : size;
  }
  return Number(text.toString('latin1', start, numberEnd));
}

/**
 * Reads a nested list of numbers that opens at `start`. Answers undefined for anything else: other values, ragged or empty
 * lists, broken JSON. The text must end in `]` or `}`, so that no loop here runs beyond it.
 */
export function scanNumbers(text: Buffer, start: number, precision: Precision): ScannedNumbers | undefined {
  const sizes: number[] = [];
  const counts: number[] = [];
  const from = used;
  let count = used;
  let depth = 0;
  let leaf = 0;
  let at = start;
  for (;;) {
    while (isSpace(text[at]!)) at++;
    if (text[at] === open) {
      if (++depth > maxRank || (leaf > 0 && depth > leaf)) return undefined;
      counts[depth] = 0;
      at++;
      continue;
    }
    if (leaf === 0) leaf = depth;
    if (depth !== leaf) return undefined;
    const row = count;
    for (;;) {
      const value = readNumber(text, at, precision);
      if (Number.isNaN(value)) return undefined;
      if (count === scratch.length) grow();
      scratch[count++] = value;
      at = numberEnd;
      while (isSpace(text[at]!)) at++;
      if (text[at] !== comma) break;
      at++;
      while (isSpace(text[at]!)) at++;
    }
    counts[depth] = count - row;
    while (text[at] === close) {
      if (sizes[depth] === undefined) sizes[depth] = counts[depth]!;
      else if (sizes[depth] !== counts[depth]) return undefined;
      at++;
      if (--depth === 0) {
        used = count;
        return new ScannedNumbers(scratch.subarray(from, count), sizes.slice(1), at);
      }
      counts[depth]!++;
      while (isSpace(text[at]!)) at++;
    }
    if (text[at] !== comma) return undefined;
    at++;
  }
}
