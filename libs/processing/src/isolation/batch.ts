import type { Tensors } from '@perch/contracts/plain';
import { type Carried, type Place, type TensorRow, tensorsLike } from './wire.ts';

/** Messages of one turn of the event loop, and all their bytes in one piece. */
export interface Batch<Message> {
  messages: Message[];
  /** Begins an ArrayBuffer of its own, which may be longer. */
  bytes: Uint8Array;
}

const leastBytes = 4_096;
/** Views of any element type can begin here. */
const alignment = 8;

/** Collects what is to be sent. Bytes are copied when they are given: who gave them may use them again at once. */
export class BatchWriter<Message> {
  private messages: Message[] = [];
  private bytes = new Uint8Array(0);
  private used = 0;
  private usual = leastBytes;

  get isEmpty(): boolean {
    return this.messages.length === 0;
  }

  add(message: Message): void {
    this.messages.push(message);
  }

  place(bytes: Uint8Array): Place {
    const at = Math.ceil(this.used / alignment) * alignment;
    this.reserve(at + bytes.byteLength);
    this.bytes.set(bytes, at);
    this.used = at + bytes.byteLength;
    return [at, bytes.byteLength];
  }

  tensors(tensors: Tensors): Carried {
    const rows: TensorRow[] = [];
    for (const name of Object.keys(tensors)) {
      const { datatype, shape, bytes } = tensors[name]!;
      rows.push([name, datatype, [...shape], this.place(bytes)]);
    }
    return { as: 'tensors', rows };
  }

  /** Any value a hook may answer. Throws what JSON.stringify does. */
  value(value: unknown): Carried {
    if (value === undefined) return { as: 'nothing' };
    if (value instanceof Uint8Array) return { as: 'bytes', place: this.place(value) };
    return tensorsLike(value) ? this.tensors(value) : { as: 'json', text: JSON.stringify(value) ?? 'null' };
  }

  take(): Batch<Message> {
    const batch = { messages: this.messages, bytes: this.bytes.subarray(0, this.used) };
    this.usual = Math.max(leastBytes, Math.ceil((this.usual + this.used * 1.25) / 2));
    this.messages = [];
    this.bytes = new Uint8Array(0);
    this.used = 0;
    return batch;
  }

  private reserve(size: number): void {
    if (size <= this.bytes.byteLength) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(size, this.bytes.byteLength * 2, this.usual));
    larger.set(this.bytes.subarray(0, this.used));
    this.bytes = larger;
  }
}

export const bytesAt = (bytes: Uint8Array, [at, length]: Place): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset + at, length);

export function tensorsAt(bytes: Uint8Array, rows: readonly TensorRow[]): Tensors {
  const tensors: Tensors = {};
  for (const [name, datatype, shape, place] of rows) {
    const tensor = { datatype, shape, bytes: bytesAt(bytes, place) };
    if (name !== '__proto__') tensors[name] = tensor;
  }
  return tensors;
}

/** `json` stays text in a Buffer, as replies are sent; see `parsedAt`. */
export function valueAt(bytes: Uint8Array, value: Carried): unknown {
  if (value.as === 'tensors') return tensorsAt(bytes, value.rows);
  if (value.as === 'bytes') return bytesAt(bytes, value.place);
  return value.as === 'json' ? Buffer.from(value.text) : undefined;
}

export const parsedAt = (bytes: Uint8Array, value: Carried): unknown =>
  value.as === 'json' ? JSON.parse(value.text) : valueAt(bytes, value);
