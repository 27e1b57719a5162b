import { AppError, type DataType } from '@perch/contracts';
import type protobuf from 'protobufjs';
import { readBigInt, readInt } from './varint.ts';

type View = { [index: number]: number | bigint; buffer: ArrayBufferLike };

/** `InferTensorContents` as read: elements by field number. */
export type Contents = Map<number, (number | bigint | Uint8Array)[]>;

/** Field number of the typed field that holds a data type's elements; FP16 and BF16 have none. */
const fieldOf: Partial<Record<DataType, number>> = {
  BOOL: 1,
  INT8: 2,
  INT16: 2,
  INT32: 2,
  INT64: 3,
  UINT8: 4,
  UINT16: 4,
  UINT32: 4,
  UINT64: 5,
  FP32: 6,
  FP64: 7,
  BYTES: 8,
};

const readElement: Record<number, (reader: protobuf.Reader) => number | bigint> = {
  1: readInt,
  2: readInt,
  3: (reader) => readBigInt(reader, true),
  4: readInt,
  5: (reader) => readBigInt(reader, false),
  6: (reader) => reader.float(),
  7: (reader) => reader.double(),
};

/** Reads one `InferTensorContents` that stands next in the message, packed or not. */
export function readContents(reader: protobuf.Reader, into: Contents = new Map()): Contents {
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end) {
    const tag = reader.uint32();
    const [field, wire] = [tag >>> 3, tag & 7];
    const read = readElement[field];
    const elements = into.get(field) ?? [];
    into.set(field, elements);
    if (field === 8 && wire === 2) elements.push(reader.bytes());
    else if (!read) reader.skipType(wire);
    else if (wire === 2) {
      const last = reader.uint32() + reader.pos;
      while (reader.pos < last) elements.push(read(reader));
    } else elements.push(read(reader));
  }
  return into;
}

const viewOf: Partial<Record<DataType, new (length: number) => View>> = {
  BOOL: Uint8Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

/** BYTES elements, each behind its 4-byte little-endian length. */
export function bytesOfElements(elements: readonly Uint8Array[]): Uint8Array {
  const size = elements.reduce((sum, element) => sum + 4 + element.length, 0);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const element of elements) {
    view.setUint32(at, element.length, true);
    bytes.set(element, at + 4);
    at += 4 + element.length;
  }
  return bytes;
}

/** The binary form of typed contents; throws `invalid` where the type has no typed field. */
export function bytesOfContents(datatype: string, contents: Contents, name: string): Uint8Array {
  const field = fieldOf[datatype as DataType];
  if (!field) throw new AppError('invalid', `input '${name}' of type ${datatype} needs raw_input_contents`);
  const elements = contents.get(field) ?? [];
  if (datatype === 'BYTES') return bytesOfElements(elements as Uint8Array[]);
  const view = new viewOf[datatype as DataType]!(elements.length);
  for (let i = 0; i < elements.length; i += 1) view[i] = elements[i] as number;
  return new Uint8Array(view.buffer);
}
