import { z } from 'zod';

/**
 * A part of a back-end that runs the graph faster. `precision` and `maxWorkspaceBytes` are TensorRT's; what they do not
 * say goes into `parameters` with the back-end's own names.
 */
export const accelerator = z
  .strictObject({
    /** `tensorrt`, `auto_mixed_precision`, `cuda`, `gpu_io`; on a CPU `openvino`. */
    name: z.string().regex(/^[a-z][a-z0-9_]{1,63}$/, 'an accelerator is tensorrt, auto_mixed_precision, openvino, …'),
    precision: z.enum(['FP32', 'FP16', 'INT8']).optional(),
    maxWorkspaceBytes: z.number().int().min(1).optional(),
    parameters: z.record(z.string().min(1), z.string()).optional(),
  })
  .meta({ id: 'Accelerator' });
export type Accelerator = z.infer<typeof accelerator>;

export const executionAccelerators = z
  .strictObject({ gpu: z.array(accelerator).min(1).optional(), cpu: z.array(accelerator).min(1).optional() })
  .refine(({ gpu, cpu }) => gpu || cpu, 'give gpu or cpu')
  .meta({ id: 'ExecutionAccelerators' });
export type ExecutionAccelerators = z.infer<typeof executionAccelerators>;

const shapes = z.record(z.string().min(1).max(256), z.array(z.number().int().min(1)).max(16));
const graphSpec = z.strictObject({
  batchSize: z.number().int().min(0),
  inputs: shapes.optional(),
  lowerBound: z.strictObject({ batchSize: z.number().int().min(0), inputs: shapes.optional() }).optional(),
});

/** Triton's own optimisation settings; what is left out has the server's default. */
export const optimization = z
  .strictObject({
    /** -1 none, 0 the back-end's default, above: more. */
    graphLevel: z.number().int().min(-1).max(99).optional(),
    priority: z.enum(['max', 'min']).optional(),
    cuda: z
      .strictObject({
        graphs: z.boolean().optional(),
        busyWaitEvents: z.boolean().optional(),
        outputCopyStream: z.boolean().optional(),
        graphSpecs: z.array(graphSpec).min(1).optional(),
      })
      .optional(),
    inputPinnedMemory: z.boolean().optional(),
    outputPinnedMemory: z.boolean().optional(),
    gatherKernelBufferThreshold: z.number().int().min(0).max(4_294_967_295).optional(),
    eagerBatching: z.boolean().optional(),
  })
  .meta({ id: 'Optimization' });
export type Optimization = z.infer<typeof optimization>;
