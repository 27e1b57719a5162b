import { z } from 'zod';
import { dataTypes, type Signature, type TensorSpec } from './tensor.ts';

export const dataType = z.enum(dataTypes);

export const tensorSpec = z
  .object({
    name: z.string().min(1).max(256),
    datatype: dataType,
    shape: z.array(z.number().int().min(-1)).max(16),
    optional: z.boolean().optional(),
  })
  .meta({ id: 'TensorSpec' }) satisfies z.ZodType<TensorSpec>;

export const signature = z
  .object({ inputs: z.array(tensorSpec), outputs: z.array(tensorSpec) })
  .meta({ id: 'Signature' }) satisfies z.ZodType<Signature>;
