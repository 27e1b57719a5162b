import { z } from 'zod';
import { errorCodes } from './error.ts';
import { dataType, signature } from './tensor.schema.ts';

/** Numbers differ when |got − wanted| > absolute + relative · |wanted|. */
const tolerance = z.strictObject({
  absolute: z.number().min(0).default(1e-6),
  relative: z.number().min(0).default(1e-5),
});
export type FixtureTolerance = z.infer<typeof tolerance>;

/**
 * One request and its wanted reply. `files`: paths beside the fixture; a multipart request, whose fields are the members
 * of `body`, or with another `contentType` the body itself. `error` in place of `wanted`: the code of the refusal.
 */
export const moduleFixture = z
  .strictObject({
    description: z.string().max(4_000).optional(),
    body: z.unknown().optional(),
    contentType: z.string().min(1).max(200).optional(),
    files: z.record(z.string().min(1).max(256), z.string().min(1).max(512)).optional(),
    headers: z.record(z.string(), z.string()).optional(),
    wanted: z.unknown().optional(),
    error: z.enum(errorCodes).optional(),
    tolerance: z
      .union([
        z
          .number()
          .min(0)
          .transform((absolute) => ({ absolute, relative: 0 })),
        tolerance,
      ])
      .prefault({}),
  })
  .refine((given) => (given.wanted === undefined) !== (given.error === undefined), {
    message: 'wants either wanted (the reply) or error (the code of the refusal)',
  })
  .refine((given) => given.body !== undefined || given.files !== undefined, { message: 'wants body or files' });
export type ModuleFixture = z.infer<typeof moduleFixture>;

const recordedTensor = z.object({ datatype: dataType, shape: z.array(z.number().int().min(0)), base64: z.string() });
/** What a model, and other endpoints, answered while a fixture ran; by a digest of what they were asked. */
export const modelRecording = z.object({
  signature,
  maxBatchSize: z.number().int().min(0),
  infer: z.record(z.string(), z.record(z.string(), recordedTensor)),
  serve: z.record(z.string(), z.unknown()),
});
export type ModelRecording = z.infer<typeof modelRecording>;
