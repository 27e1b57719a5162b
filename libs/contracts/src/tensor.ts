/** Protocol names of Triton's data types; FP16 and BF16 have no JSON form there. */
export const dataTypes = [
  'BOOL', 'UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64',
  'FP16', 'FP32', 'FP64', 'BYTES', 'BF16',
] as const; // biome-ignore format: one row reads better
export type DataType = (typeof dataTypes)[number];

/** Bytes of one element; 0 for BYTES, whose elements carry their own length. */
export const elementBytes: Record<DataType, number> = {
  BOOL: 1, UINT8: 1, UINT16: 2, UINT32: 4, UINT64: 8, INT8: 1, INT16: 2, INT32: 4, INT64: 8,
  FP16: 2, FP32: 4, FP64: 8, BYTES: 0, BF16: 2,
}; // biome-ignore format: one row reads better

/** A tensor as the model server declares it: `shape` holds the batch dimension where the model batches; -1 = any. */
export interface TensorSpec {
  name: string;
  datatype: DataType;
  shape: number[];
  optional?: boolean;
}

export interface Signature {
  inputs: TensorSpec[];
  outputs: TensorSpec[];
}

/**
 * A tensor in flight. `bytes` is Triton's binary form (little-endian, row-major, no padding; BYTES elements each behind
 * a 4-byte length), so it goes to and from the wire without a copy. `shape` includes the batch dimension.
 */
export interface Tensor {
  datatype: DataType;
  shape: readonly number[];
  bytes: Uint8Array;
}
/** Tensors by name. */
export type Tensors = Record<string, Tensor>;
