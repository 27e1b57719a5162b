const minus = 45;
const point = 46;
const zero = 48;

/** 10^0 … 10^22, the powers that a double holds exactly. */
export const powersOfTen = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

/** `digits` · 10^-`decimals` without trailing zeros; `digits` is a whole number below 2^30. Answers the next place. */
function writeFixed(target: Uint8Array, start: number, digits: number, decimals: number): number {
  let rest = digits | 0;
  let places = decimals | 0;
  while (places > 0 && rest % 10 === 0) {
    rest = (rest / 10) | 0;
    places--;
  }
  let length = 1;
  for (let bound = 10; length < 10 && rest >= bound; bound *= 10) length++;
  const end = start + (places === 0 ? length : Math.max(length, places + 1) + 1);
  let at = end - 1;
  if (places > 0) {
    for (; places > 0; places--) {
      const next = (rest / 10) | 0;
      target[at--] = zero + rest - next * 10;
      rest = next;
    }
    target[at--] = point;
  }
  while (at >= start) {
    const next = (rest / 10) | 0;
    target[at--] = zero + rest - next * 10;
    rest = next;
  }
  return end;
}

/** Most decimals a float32 may take in plain notation here: 9 digits below 1e-7. */
const plainFrom = 1e-7;
const plainBelow = 1e9;

/**
 * Writes a float32 as the shortest decimal, or hardly longer, that reads back as the same float32 (also by way of a
 * double, as JSON.parse does). NaN and infinities, which JSON does not have, become null.
 */
function writeFloat32(target: Uint8Array, start: number, value: number): number {
  let at = start;
  let size = value;
  if (value < 0) {
    target[at++] = minus;
    size = -value;
  }
  if (!(size >= plainFrom && size < plainBelow)) return writeRare(target, start, value);
  let decimals = 6;
  for (let bound = 10; size >= bound; bound *= 10) decimals--;
  for (let bound = 1; size < bound; bound /= 10) decimals++;
  // Seven digits first: they hold every number a person would write, such as 0.6, which eight would spell 0.60000002.
  for (const last = decimals + 2; decimals < last; decimals++) {
    if (decimals < 0) continue;
    const digits = Math.round(size * powersOfTen[decimals]!);
    if (Math.fround(digits / powersOfTen[decimals]!) === size) return writeFixed(target, at, digits, decimals);
  }
  return writeFixed(target, at, Math.round(size * powersOfTen[Math.max(0, decimals)]!), Math.max(0, decimals));
}

/** The fewest digits that read back as the same float32; nine always do. */
function shortText(value: number): string {
  if (Object.is(value, -0)) return '-0';
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}

/** Zero, numbers that are very large or small, and what JSON does not have. */
function writeRare(target: Uint8Array, at: number, value: number): number {
  const text = Number.isFinite(value) ? shortText(value) : 'null';
  for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  return at + text.length;
}

/** Longest float32 in this notation: a sign and 21 digits, which is where JavaScript turns to exponents. */
const float32Bytes = 22;

/** Collects JSON text in one growing Buffer. */
export class JsonText {
  private target: Buffer;
  private at = 0;

  constructor(sizeBytes = 1024) {
    this.target = Buffer.allocUnsafe(sizeBytes);
  }

  private reserve(sizeBytes: number): void {
    if (this.at + sizeBytes <= this.target.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.target.length * 2, this.at + sizeBytes));
    this.target.copy(larger, 0, 0, this.at);
    this.target = larger;
  }

  /** JSON that is written already. */
  raw(text: string): this {
    this.reserve(text.length * 3);
    this.at += this.target.write(text, this.at, 'utf8');
    return this;
  }

  string(text: string): this {
    return this.raw(JSON.stringify(text));
  }

  /** `values[from]` up to, not including, `values[to]` as one JSON list. */
  float32List(values: Float32Array, from: number, to: number): this {
    this.reserve((to - from) * (float32Bytes + 1) + 2);
    const { target } = this;
    let at = this.at;
    target[at++] = 91;
    for (let i = from; i < to; i++) {
      if (i > from) target[at++] = 44;
      at = writeFloat32(target, at, values[i]!);
    }
    target[at++] = 93;
    this.at = at;
    return this;
  }

  finish(): Buffer {
    return this.target.subarray(0, this.at);
  }
}
