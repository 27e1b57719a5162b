import { AppError } from '@perch/contracts';

export type TokenKind = 'name' | 'integer' | 'float' | 'string' | 'symbol' | 'end';

export interface Token {
  kind: TokenKind;
  /** As written; of a string: its bytes, escapes undone. */
  text: string;
  bytes?: number[];
  line: number;
  column: number;
}

/** A fault of the text with its place, both counted from 1. */
export const textFault = (at: { line: number; column: number }, words: string): AppError =>
  new AppError('invalid', `line ${at.line}, column ${at.column}: ${words}`, {
    details: { line: at.line, column: at.column },
  });

const escapes: Record<string, number> = {
  n: 10, r: 13, t: 9, a: 7, b: 8, f: 12, v: 11, '\\': 92, '"': 34, "'": 39, '?': 63,
}; // biome-ignore format: one row reads better
const number = /(0[xX][0-9a-fA-F]+)|((?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)([fF])?/y;
const name = /[A-Za-z_][A-Za-z0-9_]*/y;
const encoder = new TextEncoder();

/** Cuts protobuf text into tokens, as the C++ tokenizer does with shell comments. */
export class Tokens {
  private at = 0;
  private line = 1;
  private lineStart = 0;
  private readonly text: string;
  current: Token;

  constructor(text: string) {
    this.text = text;
    this.current = this.read();
  }

  next(): Token {
    const token = this.current;
    this.current = this.read();
    return token;
  }

  is(symbol: string): boolean {
    return this.current.kind === 'symbol' && this.current.text === symbol;
  }

  take(symbol: string): boolean {
    if (!this.is(symbol)) return false;
    this.next();
    return true;
  }

  private place() {
    return { line: this.line, column: this.at - this.lineStart + 1 };
  }

  private skipBlanks(): void {
    for (; this.at < this.text.length; this.at += 1) {
      const char = this.text[this.at]!;
      if (char === '\n') {
        this.line += 1;
        this.lineStart = this.at + 1;
      } else if (char === '#') {
        const end = this.text.indexOf('\n', this.at);
        this.at = (end === -1 ? this.text.length : end) - 1;
      } else if (!' \t\r\v\f'.includes(char)) return;
    }
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at += found[0].length;
    return found;
  }

  private read(): Token {
    this.skipBlanks();
    const place = this.place();
    const char = this.text[this.at];
    if (char === undefined) return { kind: 'end', text: '', ...place };
    const word = this.match(name);
    if (word) return { kind: 'name', text: word[0], ...place };
    if (/\d/.test(char) || (char === '.' && /\d/.test(this.text[this.at + 1] ?? ''))) return this.readNumber(place);
    if (char === '"' || char === "'") return this.readString(char, place);
    if (char < ' ' || char > '~') {
      const code = char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
      throw textFault(place, `a character that is not ASCII (U+${code}) outside a string`);
    }
    this.at += 1;
    return { kind: 'symbol', text: char, ...place };
  }

  private readNumber(place: { line: number; column: number }): Token {
    const [text, hex, decimal, suffix] = this.match(number)!;
    if (hex === undefined && /^0\d+$/.test(decimal!) && !suffix && /[89]/.test(decimal!))
      throw textFault(place, `"${text}" begins with 0, so it is octal, but holds an 8 or a 9`);
    if (/[A-Za-z_]/.test(this.text[this.at] ?? '')) throw textFault(this.place(), `wanted a blank after "${text}"`);
    const isFloat = suffix !== undefined || (hex === undefined && /[.eE]/.test(decimal!));
    return { kind: isFloat ? 'float' : 'integer', text, ...place };
  }

  private readString(quote: string, place: { line: number; column: number }): Token {
    const bytes: number[] = [];
    this.at += 1;
    for (;;) {
      const char = this.text[this.at];
      if (char === undefined) throw textFault(place, 'the string has no closing quote');
      if (char === '\0') throw textFault(this.place(), 'a string may not hold a raw zero byte');
      if (char === '\n') throw textFault(this.place(), 'a string may not hold a raw newline; write \\n');
      if (char === quote) break;
      if (char === '\\') this.readEscape(bytes);
      else {
        const point = String.fromCodePoint(this.text.codePointAt(this.at)!);
        bytes.push(...encoder.encode(point));
        this.at += point.length;
      }
    }
    this.at += 1;
    return { kind: 'string', text: '', bytes, ...place };
  }

  private readEscape(bytes: number[]): void {
    const place = this.place();
    const rest = this.text.slice(this.at + 1, this.at + 10);
    const octal = /^[0-7]{1,3}/.exec(rest)?.[0];
    const hex = /^[xX]([0-9a-fA-F]{1,2})/.exec(rest);
    const unicode = /^u([0-9a-fA-F]{4})|^U([0-9a-fA-F]{8})/.exec(rest);
    if (octal) bytes.push(Number.parseInt(octal, 8) & 0xff);
    else if (hex) bytes.push(Number.parseInt(hex[1]!, 16));
    else if (unicode) {
      const point = Number.parseInt(unicode[1] ?? unicode[2]!, 16);
      if (point > 0x10ffff) throw textFault(place, `\\${unicode[0]} is no Unicode character`);
      bytes.push(...encoder.encode(String.fromCodePoint(point)));
    } else {
      const plain = escapes[rest[0] ?? ''];
      if (plain === undefined) throw textFault(place, `"\\${rest[0] ?? ''}" is no escape sequence`);
      bytes.push(plain);
    }
    this.at += 1 + (octal ?? hex?.[0] ?? unicode?.[0] ?? ' ').length;
  }
}
