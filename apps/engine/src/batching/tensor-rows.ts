import { type DataType, elementBytes } from '@perch/contracts';
import type { NamedTensor } from '@perch/triton/server';

/** Bytes of a tensor in a buffer of its own, so that it may be handed to another thread. */
function ownBytes(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** One tensor of several that agree in all but the first size; the binary form makes this a plain joining of bytes. */
export function joinRows(tensors: readonly NamedTensor[]): NamedTensor {
  const [first] = tensors as [NamedTensor];
  const bytes = ownBytes(tensors.map((tensor) => tensor.bytes));
  if (tensors.length === 1) return { ...first, bytes };
  const rows = tensors.reduce((sum, { shape }) => sum + shape[0]!, 0);
  return { ...first, shape: [rows, ...first.shape.slice(1)], bytes };
}

/** End of `count` BYTES elements that begin at `at`. */
function skipElements(bytes: Uint8Array, at: number, count: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let end = at;
  for (let i = 0; i < count; i += 1) end += 4 + view.getUint32(end, true);
  return end;
}

/** Cuts a tensor back into pieces of so many rows; undefined when its first size is not their sum. */
export function splitRows(tensor: NamedTensor, rows: readonly number[]): NamedTensor[] | undefined {
  const { shape, bytes, datatype } = tensor;
  const total = rows.reduce((sum, count) => sum + count, 0);
  if (shape[0] !== total) return undefined;
  const inner = shape.slice(1).reduce((product, size) => product * size, 1);
  const elementSize = elementBytes[datatype as DataType];
  let at = 0;
  return rows.map((count) => {
    const end = elementSize === 0 ? skipElements(bytes, at, count * inner) : at + count * inner * elementSize;
    const piece = { ...tensor, shape: [count, ...shape.slice(1)], bytes: bytes.subarray(at, end) };
    at = end;
    return piece;
  });
}
