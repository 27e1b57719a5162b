import { z } from 'zod';

export const collectGarbage = z
  .strictObject({
    /** Only say what would go. */
    dryRun: z.boolean().default(false),
    /** What became garbage later than this is left; milliseconds, default 24 h, at least 1 h: uploads may be under way. */
    olderThanMs: z.number().int().min(3_600_000).max(31_536_000_000).default(86_400_000),
  })
  .prefault({})
  .meta({ id: 'CollectGarbage' });
export type CollectGarbage = z.output<typeof collectGarbage>;

/** One kind of garbage. `examples`: at most 20 names, the largest or oldest first. */
export const garbage = z
  .object({
    kind: z.string(),
    what: z.string(),
    count: z.number().int(),
    sizeBytes: z.number(),
    examples: z.array(z.string()),
    /** A part of it could not be removed; the rest was. */
    failed: z.string().nullable(),
  })
  .meta({ id: 'Garbage' });
export type Garbage = z.infer<typeof garbage>;

export const garbageReport = z
  .object({ dryRun: z.boolean(), before: z.string(), found: z.array(garbage), sizeBytes: z.number() })
  .meta({ id: 'GarbageReport' });
export type GarbageReport = z.infer<typeof garbageReport>;

/** What a deletion of a model or a version took from sight; its bytes go with the next `perch gc`. */
export const deletedModel = z
  .object({ project: z.string(), name: z.string(), versions: z.array(z.number().int()), sizeBytes: z.number() })
  .meta({ id: 'DeletedModel' });
export type DeletedModel = z.infer<typeof deletedModel>;
