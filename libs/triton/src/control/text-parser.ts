import protobuf from 'protobufjs';
import { type Token, Tokens, textFault } from './text-tokens.ts';

/** A message as plain values: snake_case fields, enums by name, maps as objects, integers beyond 2^53 as bigint. */
export type PlainMessage = Record<string, unknown>;

const limits: Record<string, readonly [bigint, bigint]> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
};
const booleans: Record<string, boolean> = { true: true, True: true, t: true, false: false, False: false, f: false };
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const shown = (token: Token): string =>
  token.kind === 'end' ? 'the end of the text' : token.kind === 'string' ? 'a string' : `"${token.text}"`;

function integerOf(text: string): bigint {
  return BigInt(/^0\d/.test(text) ? `0o${text.slice(1)}` : text);
}

/** Reads protobuf text by the descriptors of its message; the first fault throws `invalid` with line and column. */
class TextParser {
  private readonly tokens: Tokens;

  constructor(text: string) {
    this.tokens = new Tokens(text);
  }

  whole(type: protobuf.Type): PlainMessage {
    const message: PlainMessage = {};
    while (this.tokens.current.kind !== 'end') this.field(type, message);
    return message;
  }

  private field(type: protobuf.Type, message: PlainMessage): void {
    const token = this.tokens.next();
    if (token.kind !== 'name') throw textFault(token, `wanted a field of ${type.name}, got ${shown(token)}`);
    const field = Object.hasOwn(type.fields, token.text) ? type.fields[token.text] : undefined;
    if (!field) throw textFault(token, `${type.name} has no field named "${token.text}"`);
    field.resolve();
    const colon = this.tokens.take(':');
    const isMessage = field.map || field.resolvedType instanceof protobuf.Type;
    if (!colon && !isMessage)
      throw textFault(this.tokens.current, `wanted ":" after "${token.text}", got ${shown(this.tokens.current)}`);
    if (field.repeated || field.map) this.many(field, message);
    else {
      if (message[field.name] !== undefined) throw textFault(token, `"${field.name}" may be given once only`);
      const other = field.partOf?.oneof.find((member) => message[member] !== undefined);
      if (other) throw textFault(token, `"${field.name}" and "${other}" exclude one another`);
      message[field.name] = this.value(field);
    }
    if (!this.tokens.take(',')) this.tokens.take(';');
  }

  private many(field: protobuf.Field, message: PlainMessage): void {
    message[field.name] ??= field.map ? {} : [];
    const add = () => {
      if (field.map) this.entry(field as unknown as protobuf.MapField, message[field.name] as PlainMessage);
      else (message[field.name] as unknown[]).push(this.value(field));
    };
    if (!this.tokens.take('[')) {
      add();
      return;
    }
    if (this.tokens.take(']')) return;
    for (;;) {
      add();
      if (this.tokens.take(']')) return;
      if (!this.tokens.take(','))
        throw textFault(this.tokens.current, `wanted "," or "]" in "${field.name}", got ${shown(this.tokens.current)}`);
    }
  }

  private message(read: () => void): void {
    const open = this.tokens.next();
    const close = open.text === '{' ? '}' : open.text === '<' ? '>' : undefined;
    if (open.kind !== 'symbol' || !close) throw textFault(open, `wanted "{" or "<", got ${shown(open)}`);
    while (!this.tokens.take(close)) {
      if (this.tokens.current.kind === 'end' || this.tokens.is('}') || this.tokens.is('>'))
        throw textFault(this.tokens.current, `wanted "${close}" or a field, got ${shown(this.tokens.current)}`);
      read();
    }
  }

  /** A map entry is written as a message of `key` and `value`; the last of equal keys wins. */
  private entry(field: protobuf.MapField, into: PlainMessage): void {
    const entry = new protobuf.Type(`${field.name} entry`);
    const key = new protobuf.Field('key', 1, field.keyType);
    const value = new protobuf.Field('value', 2, field.type);
    value.resolvedType = field.resolvedType;
    value.resolved = true;
    key.resolved = true;
    entry.fields = { key, value };
    const read: PlainMessage = {};
    this.message(() => this.field(entry, read));
    const missing = field.resolvedType instanceof protobuf.Type ? {} : '';
    Object.defineProperty(into, String(read['key'] ?? (field.keyType === 'string' ? '' : 0)), {
      value: read['value'] ?? missing,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }

  private value(field: protobuf.Field): unknown {
    const { resolvedType } = field;
    if (resolvedType instanceof protobuf.Type) {
      const message: PlainMessage = {};
      this.message(() => this.field(resolvedType, message));
      return message;
    }
    if (resolvedType instanceof protobuf.Enum) return this.enumValue(field, resolvedType);
    if (field.type === 'string') return this.string(field);
    if (field.type === 'bool') return this.bool(field);
    if (field.type === 'float' || field.type === 'double') return this.float(field);
    return this.integer(field, limits[field.type]!);
  }

  private string(field: protobuf.Field): string {
    const first = this.tokens.current;
    if (first.kind !== 'string')
      throw textFault(first, `"${field.name}" wants a string in quotes, got ${shown(first)}`);
    const bytes: number[] = [];
    while (this.tokens.current.kind === 'string') bytes.push(...this.tokens.next().bytes!);
    try {
      return decoder.decode(new Uint8Array(bytes));
    } catch {
      throw textFault(first, `the string of "${field.name}" is not UTF-8`);
    }
  }

  private bool(field: protobuf.Field): boolean {
    const token = this.tokens.next();
    const word = token.kind === 'name' ? booleans[token.text] : undefined;
    if (word !== undefined) return word;
    const value = token.kind === 'integer' ? integerOf(token.text) : undefined;
    if (value === 0n || value === 1n) return value === 1n;
    throw textFault(token, `"${field.name}" wants true or false, got ${shown(token)}`);
  }

  private integer(field: protobuf.Field, [low, high]: readonly [bigint, bigint]): number | bigint {
    const minus = this.tokens.take('-');
    const token = this.tokens.next();
    const wanted = `"${field.name}" wants a whole number from ${low} to ${high}`;
    if (token.kind !== 'integer') throw textFault(token, `${wanted}, got ${minus ? '-' : ''}${shown(token)}`);
    const value = minus ? -integerOf(token.text) : integerOf(token.text);
    if (value < low || value > high || (minus && low === 0n)) throw textFault(token, `${wanted}, got ${value}`);
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }

  private float(field: protobuf.Field): number {
    const sign = this.tokens.take('-') ? -1 : 1;
    const token = this.tokens.next();
    const word = token.kind === 'name' ? token.text.toLowerCase() : undefined;
    if (word === 'inf' || word === 'infinity') return sign * Number.POSITIVE_INFINITY;
    if (word === 'nan') return Number.NaN;
    const decimal = token.kind === 'float' || (token.kind === 'integer' && !/^0[xX0-9]/.test(token.text));
    if (!decimal) throw textFault(token, `"${field.name}" wants a decimal number, got ${shown(token)}`);
    const value = sign * Number(token.text.replace(/[fF]$/, ''));
    return field.type === 'float' ? Math.fround(value) : value;
  }

  private enumValue(field: protobuf.Field, type: protobuf.Enum): string | number {
    const minus = this.tokens.take('-');
    const token = this.tokens.next();
    const wanted = `"${field.name}" wants one of ${Object.keys(type.values).join(', ')}`;
    if (token.kind === 'name' && !minus && Object.hasOwn(type.values, token.text)) return token.text;
    if (token.kind !== 'integer') throw textFault(token, `${wanted}, got ${minus ? '-' : ''}${shown(token)}`);
    const value = Number(integerOf(token.text)) * (minus ? -1 : 1);
    if (Math.abs(value) > 2 ** 31 - 1) throw textFault(token, `${wanted}, got ${value}`);
    return type.valuesById[value] ?? value;
  }
}

/** Parses protobuf text format into plain values; throws `invalid` naming line and column of the first fault. */
export function parseText(type: protobuf.Type, text: string): PlainMessage {
  if (text.startsWith('\uFEFF'))
    throw textFault({ line: 1, column: 1 }, 'the text begins with a byte-order mark; save it as plain UTF-8');
  return new TextParser(text).whole(type);
}
