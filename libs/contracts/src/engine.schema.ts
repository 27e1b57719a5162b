import { z } from 'zod';
import { dataType } from './tensor.schema.ts';

/** Platforms with a name of their own; any other word is taken as the name of a Triton backend. */
export const knownPlatforms = [
  'onnxruntime_onnx', 'tensorrt_plan', 'pytorch_libtorch', 'tensorflow_savedmodel', 'tensorflow_graphdef', 'openvino', 'python', 'ensemble',
] as const; // biome-ignore format: one row reads better
export const platform = z
  .string()
  .regex(/^[a-z][a-z0-9_]{1,63}$/, 'a platform is onnxruntime_onnx, tensorrt_plan, … or the name of a Triton backend');

/** Tensor of a model without the batch dimension, as `config.pbtxt` writes it. */
export const engineTensor = z
  .strictObject({
    name: z.string().min(1).max(256),
    type: dataType,
    dims: z
      .array(
        z
          .number()
          .int()
          .min(-1)
          .refine((n) => n !== 0, 'a dimension is -1 or at least 1'),
      )
      .min(1)
      .max(16),
    optional: z.boolean().optional(),
    reshape: z.array(z.number().int().min(-1)).optional(),
  })
  .meta({ id: 'EngineTensor' });
export type EngineTensor = z.infer<typeof engineTensor>;

export const instanceGroup = z
  .strictObject({
    kind: z.enum(['auto', 'cpu', 'gpu', 'model']).default('auto'),
    count: z.number().int().min(1).max(256).default(1),
    gpus: z.array(z.number().int().min(0)).optional(),
    profile: z.array(z.string()).optional(),
  })
  .meta({ id: 'InstanceGroup' });
export type InstanceGroup = z.infer<typeof instanceGroup>;

export const dynamicBatching = z
  .strictObject({
    preferredSizes: z.array(z.number().int().min(1)).optional(),
    maxQueueDelayUs: z.number().int().min(0).optional(),
    maxQueueSize: z.number().int().min(1).optional(),
    preserveOrdering: z.boolean().optional(),
  })
  .meta({ id: 'DynamicBatching' });

/**
 * Engine settings of an endpoint. Left out: platform from the files, tensors from the ONNX graph, batching off
 * (`maxBatchSize` 0 means: no batch dimension is declared, dims are taken as they stand).
 */
export const engineSpec = z
  .strictObject({
    platform: platform.optional(),
    formatPriority: z.array(platform).min(1).max(8).optional(),
    maxBatchSize: z.number().int().min(0).max(65_536).optional(),
    dynamicBatching: dynamicBatching.optional(),
    instances: z.array(instanceGroup).min(1).max(16).optional(),
    inputs: z.array(engineTensor).min(1).max(64).optional(),
    outputs: z.array(engineTensor).min(1).max(64).optional(),
    parameters: z.record(z.string(), z.string()).optional(),
    defaultModelFilename: z.string().min(1).max(255).optional(),
    /** Text of the user's own config.pbtxt, merged over ours; the user's text wins except for the name. */
    config: z.string().max(262_144).optional(),
  })
  .meta({ id: 'EngineSpec' });
export type EngineSpec = z.infer<typeof engineSpec>;

/**
 * Engine settings with nothing left to decide: what a server renders to `config.pbtxt`. Its digest is part of the
 * Triton model's identity, so equal settings give equal models.
 */
export const resolvedEngine = z.object({
  platform: z.string(),
  backend: z.string(),
  maxBatchSize: z.number().int(),
  dynamicBatching: dynamicBatching.nullable(),
  instances: z.array(instanceGroup),
  /** Empty: the model server completes them from the model. */
  inputs: z.array(engineTensor),
  outputs: z.array(engineTensor),
  parameters: z.record(z.string(), z.string()),
  defaultModelFilename: z.string().nullable(),
  config: z.string().nullable(),
});
export type ResolvedEngine = z.infer<typeof resolvedEngine>;
