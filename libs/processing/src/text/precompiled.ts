/** Characters of at most so many bytes are looked up whole with their marks. */
const mostGraphemeBytes = 5;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

/**
 * SentencePiece's normalisation table: a double array of 32-bit units (Darts) from bytes to an offset in a text of
 * replacements, each ended by a zero. Layout as in `spm_precompiled` of the reference.
 */
class CharsMap {
  private readonly units: Uint32Array;
  private readonly replacements: Buffer;
  private readonly found = new Map<string, string | null>();

  constructor(blob: Buffer) {
    const size = blob.length < 4 ? -1 : blob.readUInt32LE(0);
    if (size < 4 || size % 4 !== 0 || 4 + size > blob.length) throw new Error('its precompiled_charsmap is damaged');
    this.units = new Uint32Array(Uint8Array.from(blob.subarray(4, 4 + size)).buffer);
    this.replacements = blob.subarray(4 + size);
  }

  /** What stands for the shortest beginning of `chunk` that the table knows; null: none. Remembered, as texts repeat. */
  lookUp(chunk: string): string | null {
    const known = this.found.get(chunk);
    if (known !== undefined) return known;
    const result = this.search(Buffer.from(chunk));
    if (this.found.size < 65_536) this.found.set(chunk, result);
    return result;
  }

  private search(key: Buffer): string | null {
    let at = offsetOf(this.units[0]!);
    for (const byte of key) {
      if (byte === 0) return null;
      at ^= byte;
      const unit = this.units[at] ?? 0;
      if ((unit & 0x800000ff) !== byte) return null;
      at ^= offsetOf(unit);
      if ((unit >>> 8) & 1) return this.replacementAt((this.units[at] ?? 0) & 0x7fffffff);
    }
    return null;
  }

  private replacementAt(start: number): string {
    const end = this.replacements.indexOf(0, start);
    return this.replacements.toString('utf8', start, end < 0 ? undefined : end);
  }
}

const offsetOf = (unit: number): number => (unit >>> 10) << ((unit & 512) >>> 6);

/** Plain ASCII but for a line feed after a carriage return, which is one grapheme with it. */
const plain = /[\x20-\x7e\n\t]+(?![^\x20-\x7e\n\t])|[\x20-\x7e\n\t]+(?=[\x20-\x7e\n\t])/y;

/**
 * Replaces grapheme by grapheme, and where a grapheme is not known or long, character by character. A short grapheme
 * of which only the beginning is known is replaced by that beginning's: so does the reference.
 */
export function readPrecompiled(charsmap: string | null | undefined): (text: string) => string {
  if (!charsmap) return (text) => text;
  const map = new CharsMap(Buffer.from(charsmap, 'base64'));
  const character = (one: string): string => map.lookUp(one) ?? one;
  const grapheme = (one: string): string => {
    if (one.length === 1) return character(one);
    const whole = Buffer.byteLength(one) <= mostGraphemeBytes ? map.lookUp(one) : null;
    if (whole !== null) return whole;
    let result = '';
    for (const part of one) result += character(part);
    return result;
  };
  return (text) => {
    let result = '';
    for (let at = 0; at < text.length; ) {
      plain.lastIndex = at;
      const easy = plain.exec(text)?.[0];
      if (easy) {
        for (const one of easy) result += character(one);
        at += easy.length;
        continue;
      }
      const end = nextPlain(text, at);
      for (const { segment } of segmenter.segment(text.slice(at, end))) result += grapheme(segment);
      at = end;
    }
    return result;
  };
}

/** Where two plain characters stand beside each other again: no grapheme reaches over the first of them. */
function nextPlain(text: string, from: number): number {
  const isPlain = (at: number) => {
    const code = text.charCodeAt(at);
    return (code >= 32 && code < 127) || code === 9 || code === 10;
  };
  for (let at = from + 1; at + 1 < text.length; at++) if (isPlain(at) && isPlain(at + 1)) return at;
  return text.length;
}
