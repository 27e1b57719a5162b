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
 * Writes a float32 as the shortest decimal, or one digit more, that reads back as the same float32 (also by way of a
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
  let decimals = 7;
  for (let bound = 10; size >= bound; bound *= 10) decimals--;
  for (let bound = 1; size < bound; bound /= 10) decimals++;
  if (decimals < 0) return writeFixed(target, at, size, 0);
  const eight = Math.round(size * powersOfTen[decimals]!);
  if (Math.fround(eight / powersOfTen[decimals]!) === size) return writeFixed(target, at, eight, decimals);
  return writeFixed(target, at, Math.round(size * powersOfTen[decimals + 1]!), decimals + 1);
}

function writeRare(target: Uint8Array, at: number, value: number): number {
  const plain = Object.is(value, -0) ? '-0' : String(Number(value.toPrecision(9)));
  const text = Number.isFinite(value) ? plain : 'null';
  for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  return at + text.length;
}

/** Longest float32 in this notation: sign, "0.", 6 zeros, 9 digits, or the exponent form. */
const float32Bytes = 20;

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
