import type protobuf from 'protobufjs';

/**
 * 64-bit integers straight from the message: protobufjs gives a class of its own (or, where that is not installed beside
 * it, a rounded number).
 */
export function readBigInt(reader: protobuf.Reader, signed: boolean): bigint {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    if (reader.pos >= reader.len) throw new RangeError('message ends within a number');
    const byte = reader.buf[reader.pos++]!;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return signed ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value);
  }
  throw new RangeError('a number is longer than 64 bits');
}

/** An int64 as a number; exact up to 2^53. */
export function readInt(reader: protobuf.Reader): number {
  const byte = reader.buf[reader.pos];
  if (byte !== undefined && byte < 0x80 && reader.pos < reader.len) {
    reader.pos += 1;
    return byte;
  }
  return Number(readBigInt(reader, true));
}
