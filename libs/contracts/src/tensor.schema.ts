import { z } from 'zod';

/** Protocol names of Triton's data types; FP16 and BF16 have no JSON form there. */
export const dataTypes = [
  'BOOL', 'UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64',
  'FP16', 'FP32', 'FP64', 'BYTES', 'BF16',
] as const; // biome-ignore format: one row reads better
export const dataType = z.enum(dataTypes);
export type DataType = z.infer<typeof dataType>;

/** Bytes of one element; 0 for BYTES, whose elements carry their own length. */
export const elementBytes: Record<DataType, number> = {
  BOOL: 1, UINT8: 1, UINT16: 2, UINT32: 4, UINT64: 8, INT8: 1, INT16: 2, INT32: 4, INT64: 8,
  FP16: 2, FP32: 4, FP64: 8, BYTES: 0, BF16: 2,
}; // biome-ignore format: one row reads better

/** A tensor as the model server declares it: `shape` holds the batch dimension where the model batches; -1 = any. */
export const tensorSpec = z
  .object({
    name: z.string().min(1).max(256),
    datatype: dataType,
    shape: z.array(z.number().int().min(-1)).max(16),
    optional: z.boolean().optional(),
  })
  .meta({ id: 'TensorSpec' });
export type TensorSpec = z.infer<typeof tensorSpec>;

export const signature = z
  .object({ inputs: z.array(tensorSpec), outputs: z.array(tensorSpec) })
  .meta({ id: 'Signature' });
export type Signature = z.infer<typeof signature>;

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
