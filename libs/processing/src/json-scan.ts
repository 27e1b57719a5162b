import { isUtf8 } from 'node:buffer';
import { parseJsonBody } from './json-body.ts';
import { isSpace, type Precision, scanNumbers, startScan } from './number-scan.ts';

/** Smaller bodies are read by JSON.parse in no time. */
const worthBytes = 4096;
/** Shorter lists (a shape, a few options) become plain lists again. */
const worthNumbers = 256;
const maxDepth = 4;
/** Longer names and texts are not what this reader is for. */
const maxStringBytes = 256;
const maxLiteralBytes = 32;

const quote = 34;
const backslash = 92;

/** Thrown, and caught here, for whatever this reader leaves to JSON.parse. */
const notPlain = Symbol('not plain');

/** Reads plain JSON: objects, lists of objects, and nested lists of numbers, which are scanned and not parsed. */
class PlainReader {
  private at = 0;
  private readonly text: Buffer;
  private readonly precision: Precision;

  constructor(text: Buffer, precision: Precision) {
    this.text = text;
    this.precision = precision;
  }

  read(): unknown {
    const value = this.value(0);
    if (this.peek() !== undefined) throw notPlain;
    return value;
  }

  /** The next byte that is no space, without taking it; undefined at the end. */
  private peek(): string | undefined {
    for (; this.at < this.text.length; this.at++) {
      if (!isSpace(this.text[this.at]!)) return String.fromCharCode(this.text[this.at]!);
    }
    return undefined;
  }

  private take(wanted: string): void {
    if (this.peek() !== wanted) throw notPlain;
    this.at++;
  }

  private value(depth: number): unknown {
    const next = this.peek();
    if (depth > maxDepth || next === undefined) throw notPlain;
    if (next === '{') return this.object(depth);
    if (next === '[') return this.list(depth);
    if (next === '"') return this.string();
    return this.literal();
  }

  private object(depth: number): Record<string, unknown> {
    const fields: Record<string, unknown> = {};
    this.take('{');
    for (;;) {
      const name = this.string();
      if (name === '__proto__') throw notPlain;
      this.take(':');
      fields[name] = this.value(depth + 1);
      if (this.peek() === '}') break;
      this.take(',');
    }
    this.at++;
    return fields;
  }

  private list(depth: number): unknown {
    const start = this.at++;
    if (this.peek() !== '{') return this.numbers(start);
    const items: unknown[] = [];
    for (;;) {
      items.push(this.value(depth + 1));
      if (this.peek() === ']') break;
      this.take(',');
    }
    this.at++;
    return items;
  }

  private numbers(start: number): unknown {
    const scanned = scanNumbers(this.text, start, this.precision);
    if (!scanned) throw notPlain;
    this.at = scanned.end;
    if (scanned.values.length >= worthNumbers) return scanned;
    return JSON.parse(this.text.toString('latin1', start, scanned.end));
  }

  private string(): string {
    this.take('"');
    const start = this.at;
    const end = this.text.indexOf(quote, start);
    if (end < 0 || end - start > maxStringBytes) throw notPlain;
    for (let i = start; i < end; i++) if (this.text[i] === backslash || this.text[i]! < 32) throw notPlain;
    this.at = end + 1;
    return this.text.toString('utf8', start, end);
  }

  private literal(): unknown {
    const start = this.at;
    const rest = this.text.toString('latin1', start, start + maxLiteralBytes);
    const length = rest.search(/[\s,\]}]/);
    if (length < 0) throw notPlain;
    this.at += length;
    return JSON.parse(rest.slice(0, length));
  }
}

/**
 * Parses a JSON body as JSON.parse does, except that long lists of numbers in a big, plain body come as `ScannedNumbers`.
 * Those hold only until the next call. Throws `invalid` for what is no JSON.
 */
export function readJsonBody(body: Buffer, precision: Precision): unknown {
  let end = body.length;
  while (end > 0 && isSpace(body[end - 1]!)) end--;
  const last = body[end - 1];
  if (end < worthBytes || (last !== 125 && last !== 93) || !isUtf8(body)) return parseJsonBody(body);
  startScan();
  try {
    return new PlainReader(body.subarray(0, end), precision).read();
  } catch (error) {
    if (error !== notPlain && !(error instanceof SyntaxError)) throw error;
    return parseJsonBody(body);
  }
}
