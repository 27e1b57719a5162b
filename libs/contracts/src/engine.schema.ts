import { z } from 'zod';
import { executionAccelerators, optimization } from './optimization.schema.ts';
import { dynamicBatching, sequenceBatching, warmup } from './scheduling.schema.ts';
import { dataType } from './tensor.schema.ts';

/** Platforms with a name of their own; any other word is taken as the name of a Triton backend. */
export const knownPlatforms = [
  'onnxruntime_onnx', 'tensorrt_plan', 'pytorch_libtorch', 'torch_aoti', 'tensorflow_savedmodel', 'tensorflow_graphdef', 'openvino', 'python', 'ensemble',
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
    /** Of an input: how an image lies in memory. */
    format: z.enum(['nhwc', 'nchw']).optional(),
    /** Of an input: rows of a batch may differ in shape. */
    raggedBatch: z.boolean().optional(),
    /** TensorRT: values that are shapes. */
    shapeTensor: z.boolean().optional(),
    /** Of an output: a file of the version, one label a line, for classification. */
    labelFile: z.string().min(1).max(255).optional(),
  })
  .meta({ id: 'EngineTensor' });
export type EngineTensor = z.infer<typeof engineTensor>;

/** Instances wait for each other's use of named resources, where the server runs with `--rate-limit`. */
export const rateLimiter = z
  .strictObject({
    resources: z
      .array(
        z.strictObject({
          name: z.string().min(1).max(128),
          count: z.number().int().min(1).max(1_000_000),
          /** Shared by all devices. */
          global: z.boolean().optional(),
        }),
      )
      .min(1)
      .optional(),
    /** 2 runs half as often as 1. */
    priority: z.number().int().min(1).max(1_000_000).optional(),
  })
  .meta({ id: 'RateLimiter' });

export const instanceGroup = z
  .strictObject({
    kind: z.enum(['auto', 'cpu', 'gpu', 'model']).default('auto'),
    count: z.number().int().min(1).max(256).default(1),
    gpus: z.array(z.number().int().min(0)).optional(),
    /** Names of TensorRT optimisation profiles. */
    profile: z.array(z.string()).optional(),
    name: z.string().min(1).max(128).optional(),
    /** Deep-learning accelerators beside the GPU. */
    secondaryDevices: z
      .array(z.strictObject({ kind: z.literal('nvdla').default('nvdla'), id: z.number().int().min(0) }))
      .min(1)
      .optional(),
    /** Loaded, never scheduled. */
    passive: z.boolean().optional(),
    hostPolicy: z.string().min(1).max(128).optional(),
    rateLimiter: rateLimiter.optional(),
  })
  .meta({ id: 'InstanceGroup' });
export type InstanceGroup = z.infer<typeof instanceGroup>;

export const computeCapability = z.string().regex(/^\d{1,2}\.\d$/, 'a compute capability is 8.6');

/** What built a TensorRT plan, where its file does not tell: it runs on that version and on such GPUs only. */
export const tensorrtOrigin = z
  .strictObject({
    version: z
      .string()
      .regex(/^\d{1,3}(\.\d{1,3}){1,3}$/, 'a TensorRT version is 10.3.0')
      .optional(),
    /** `8.6`; several where the plan was built for them; `any` with hardware compatibility. */
    computeCapability: z
      .union([computeCapability, z.array(computeCapability).min(1).max(32), z.literal('any')])
      .optional(),
  })
  .meta({ id: 'TensorrtOrigin' });

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
    executionAccelerators: executionAccelerators.optional(),
    optimization: optimization.optional(),
    /** Instead of `dynamicBatching`. */
    sequenceBatching: sequenceBatching.optional(),
    /** Equal requests are answered from the server's cache, where it runs with `--cache-config`. */
    responseCache: z.boolean().optional(),
    warmup: z.array(warmup).min(1).max(32).optional(),
    /** A request may have no answer, one or many. */
    decoupled: z.boolean().optional(),
    /** Compute capability → file name of the TensorRT plan built for it. */
    ccModelFilenames: z.record(computeCapability, z.string().min(1).max(255)).optional(),
    tensorrt: tensorrtOrigin.optional(),
    /** First guess of what one server needs for it; what was measured counts more. No part of a model's identity. */
    memoryBytes: z.number().int().min(1).optional(),
    /** Text of the user's own config.pbtxt, merged over ours; the user's text wins except for the name. */
    config: z.string().max(262_144).optional(),
    /** Which model folder is served, where a version holds several; left out: the ensemble that no other steps into. */
    folder: z.string().min(1).max(128).optional(),
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
  // A reader leaves out what it does not know, here as anywhere in a document.
  dynamicBatching: z.object(dynamicBatching.shape).nullable(),
  instances: z.array(z.object(instanceGroup.shape)),
  /** Empty: the model server completes them from the model. */
  inputs: z.array(z.object(engineTensor.shape)),
  outputs: z.array(z.object(engineTensor.shape)),
  parameters: z.record(z.string(), z.string()),
  defaultModelFilename: z.string().nullable(),
  config: z.string().nullable(),
  // Absent where nothing was said, so that identities given by an earlier release stay.
  executionAccelerators: executionAccelerators.optional(),
  optimization: optimization.optional(),
  sequenceBatching: sequenceBatching.optional(),
  responseCache: z.boolean().optional(),
  warmup: z.array(warmup).optional(),
  decoupled: z.boolean().optional(),
  ccModelFilenames: z.record(z.string(), z.string()).optional(),
  /** The version's own config.pbtxt, where settings above or `config` are to win over it. */
  configBelow: z.string().optional(),
});
export type ResolvedEngine = z.infer<typeof resolvedEngine>;
