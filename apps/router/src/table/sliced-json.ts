import { AppError } from '@perch/contracts';
import type { Slice } from './slice.ts';

const quote = 34;
const backslash = 92;
const comma = 44;
const colon = 58;
const openBrace = 123;
const closeBrace = 125;
const isBlank = (byte: number): boolean => byte === 32 || byte === 10 || byte === 13 || byte === 9;

const broken = (at: number): AppError => new AppError('upstream', `JSON broken at byte ${at}`);

/**
 * `JSON.parse` for big documents that lets requests through in between: objects are walked member by member down to
 * `depth` levels, and only what lies deeper is parsed in one piece. `read` may put another value in the place of each
 * piece (checked, say), given its path. Throws `upstream` on broken JSON, and what `read` throws.
 */
export type ReadPiece = (path: readonly string[], value: unknown) => unknown;

export class SlicedJson {
  private readonly bytes: Buffer;
  private readonly slice: Slice;
  private readonly read: ReadPiece;
  private readonly path: string[] = [];
  private at = 0;

  constructor(bytes: Buffer, slice: Slice, read: ReadPiece = (_path, value) => value) {
    this.bytes = bytes;
    this.slice = slice;
    this.read = read;
  }

  async parse(depth: number): Promise<unknown> {
    const value = await this.value(depth);
    this.skipBlanks();
    if (this.at !== this.bytes.length) throw broken(this.at);
    return value;
  }

  private async value(depth: number): Promise<unknown> {
    this.skipBlanks();
    if (depth > 0 && this.bytes[this.at] === openBrace) return this.object(depth);
    const from = this.at;
    this.skipValue();
    const value = this.read(this.path, this.parsePiece(from));
    if (this.slice.isOver()) await this.slice.next();
    return value;
  }

  private async object(depth: number): Promise<Record<string, unknown>> {
    const members: Record<string, unknown> = {};
    this.at += 1;
    this.skipBlanks();
    if (this.bytes[this.at] === closeBrace) {
      this.at += 1;
      return members;
    }
    for (;;) {
      this.skipBlanks();
      const from = this.at;
      if (this.bytes[from] !== quote) throw broken(from);
      this.skipText();
      const key = this.parsePiece(from) as string;
      this.skipBlanks();
      if (this.bytes[this.at++] !== colon) throw broken(this.at - 1);
      this.path.push(key);
      const value = await this.value(depth - 1);
      this.path.pop();
      // defineProperty: a member named __proto__ must stay a member
      Object.defineProperty(members, key, { value, enumerable: true, writable: true, configurable: true });
      this.skipBlanks();
      const next = this.bytes[this.at++];
      if (next === closeBrace) return members;
      if (next !== comma) throw broken(this.at - 1);
    }
  }

  private parsePiece(from: number): unknown {
    try {
      return JSON.parse(this.bytes.toString('utf8', from, this.at));
    } catch {
      throw broken(from);
    }
  }

  private skipBlanks(): void {
    while (this.at < this.bytes.length && isBlank(this.bytes[this.at]!)) this.at += 1;
  }

  /** From an opening quote to behind the closing one. */
  private skipText(): void {
    const { bytes } = this;
    for (let i = this.at + 1; i < bytes.length; i += 1) {
      const byte = bytes[i]!;
      if (byte === backslash) i += 1;
      else if (byte === quote) {
        this.at = i + 1;
        return;
      }
    }
    throw broken(this.at);
  }

  /** To behind a value of any kind; whether it is well-formed inside shows when it is parsed. */
  private skipValue(): void {
    const { bytes } = this;
    let nesting = 0;
    while (this.at < bytes.length) {
      const byte = bytes[this.at]!;
      if (byte === quote) this.skipText();
      else if (byte === openBrace || byte === 91) {
        nesting += 1;
        this.at += 1;
      } else if (byte === closeBrace || byte === 93) {
        if (nesting === 0) return;
        nesting -= 1;
        this.at += 1;
      } else if (nesting === 0 && (byte === comma || isBlank(byte))) return;
      else this.at += 1;
      if (nesting === 0 && (byte === quote || byte === closeBrace || byte === 93)) return;
    }
  }
}
