import { z } from 'zod';
import { dataType } from './tensor.schema.ts';

const microseconds = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const tensorName = z.string().min(1).max(256);
/** A file below one folder of the model (`warmup/`, `initial_state/`). */
const fileBelow = z
  .string()
  .regex(/^(?!\.\.?(\/|$))[^/\\]+(\/(?!\.\.?(\/|$))[^/\\]+)*$/, 'a file is a relative path without ".." segments');

/** What happens to a request that waits for its batch. */
export const queuePolicy = z
  .strictObject({
    /** What becomes of a request that waited too long; the server's default: reject. */
    timeoutAction: z.enum(['reject', 'delay']).optional(),
    /** 0: none. */
    defaultTimeoutUs: microseconds.optional(),
    /** Whether a request may shorten it by its parameter `timeout`. */
    allowTimeoutOverride: z.boolean().optional(),
    /** Requests beyond it fail at once; 0: no limit. */
    maxQueueSize: z.number().int().min(0).max(4_294_967_295).optional(),
  })
  .meta({ id: 'QueuePolicy' });
export type QueuePolicy = z.infer<typeof queuePolicy>;

export const dynamicBatching = z
  .strictObject({
    preferredSizes: z.array(z.number().int().min(1)).optional(),
    maxQueueDelayUs: z.number().int().min(0).optional(),
    maxQueueSize: z.number().int().min(1).optional(),
    preserveOrdering: z.boolean().optional(),
    /** Levels 1 (first served) to this; left out or 0: none. */
    priorityLevels: z.number().int().min(0).max(1_000).optional(),
    /** Level of a request that names none. */
    defaultPriorityLevel: z.number().int().min(1).max(1_000).optional(),
    queuePolicy: queuePolicy.optional(),
    /** By level. */
    priorityQueuePolicies: z
      .record(z.string().regex(/^[1-9][0-9]{0,3}$/, 'a policy is keyed by a level'), queuePolicy)
      .optional(),
  })
  .meta({ id: 'DynamicBatching' });

const pair = <T extends z.ZodType>(of: T) => z.tuple([of, of]);

/** What an input tells the model about its sequence; a flag wants its values for false and true, `correlation_id` a type. */
export const sequenceControl = z
  .strictObject({
    kind: z.enum(['start', 'ready', 'end', 'correlation_id']),
    int32FalseTrue: pair(z.number().int()).optional(),
    fp32FalseTrue: pair(z.number()).optional(),
    boolFalseTrue: pair(z.boolean()).optional(),
    type: dataType.optional(),
  })
  .superRefine((control, ctx) => {
    const flags = [control.int32FalseTrue, control.fp32FalseTrue, control.boolFalseTrue].filter(Boolean).length;
    const fault = (message: string) => ctx.addIssue({ code: 'custom', path: ['kind'], message });
    if (control.kind === 'correlation_id' && (flags > 0 || !control.type)) fault('correlation_id wants type alone');
    if (control.kind !== 'correlation_id' && (flags !== 1 || control.type))
      fault(`${control.kind} wants one of int32FalseTrue, fp32FalseTrue, boolFalseTrue`);
  });

const initialState = z
  .strictObject({
    name: tensorName.optional(),
    type: dataType,
    dims: z.array(z.number().int().min(1)).max(16),
    zeros: z.literal(true).optional(),
    /** Below the folder `initial_state` of the model. */
    file: fileBelow.optional(),
  })
  .refine((state) => !state.zeros !== !state.file, 'give either zeros or file');

export const sequenceState = z.strictObject({
  inputName: tensorName,
  outputName: tensorName,
  type: dataType,
  dims: z.array(z.number().int().min(-1)).max(16),
  initial: z.array(initialState).min(1).optional(),
  sameBuffer: z.boolean().optional(),
  growableMemory: z.boolean().optional(),
});

/** Requests of one sequence go to one instance. Left out both `direct` and `oldest`: direct. */
export const sequenceBatching = z
  .strictObject({
    direct: z
      .strictObject({
        maxQueueDelayUs: microseconds.optional(),
        minimumSlotUtilization: z.number().min(0).max(1).optional(),
      })
      .optional(),
    oldest: z
      .strictObject({
        maxCandidateSequences: z.number().int().min(1).max(1_000_000).optional(),
        preferredSizes: z.array(z.number().int().min(1)).optional(),
        maxQueueDelayUs: microseconds.optional(),
        preserveOrdering: z.boolean().optional(),
      })
      .optional(),
    /** A sequence without a request for so long is forgotten; the server's default: 1 s. */
    maxIdleUs: microseconds.optional(),
    controlInputs: z
      .array(z.strictObject({ name: tensorName, controls: z.array(sequenceControl).min(1) }))
      .min(1)
      .optional(),
    states: z.array(sequenceState).min(1).optional(),
    iterative: z.boolean().optional(),
  })
  .refine((batching) => !(batching.direct && batching.oldest), 'give either direct or oldest')
  .meta({ id: 'SequenceBatching' });
export type SequenceBatching = z.infer<typeof sequenceBatching>;

/** One input of a warm-up request: zeros, random values or a file below the folder `warmup` of the model. */
export const warmupInput = z
  .strictObject({
    type: dataType,
    /** Without the batch dimension. */
    dims: z.array(z.number().int().min(1)).max(16),
    data: z.union([z.enum(['zeros', 'random']), z.strictObject({ file: fileBelow })]).default('zeros'),
  })
  .meta({ id: 'WarmupInput' });

/** A request that the server runs before the model counts as ready. */
export const warmup = z
  .strictObject({
    name: z.string().min(1).max(128),
    batchSize: z.number().int().min(0).max(65_536).optional(),
    /** Runs on each instance; default 1. */
    count: z.number().int().min(1).max(10_000).optional(),
    inputs: z.record(tensorName, warmupInput),
  })
  .meta({ id: 'Warmup' });
export type Warmup = z.infer<typeof warmup>;
