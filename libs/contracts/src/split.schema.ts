import { z } from 'zod';
import { endpointName } from './names.schema.ts';

const weight = z.number().min(0).max(1_000_000);

/** `text/a` (as that endpoint splits its own traffic) or `text/a/7` (one version of it). */
export const splitTarget = z
  .string()
  .max(211)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(\/[A-Za-z0-9][A-Za-z0-9._-]{0,63}){0,8}$/,
    'a target is an endpoint, or an endpoint, "/" and a version number',
  );

/** An endpoint's name, with or without a slash at its end. */
const splitPrefix = z
  .string()
  .max(201)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(\/[A-Za-z0-9][A-Za-z0-9._-]{0,63}){0,7}\/?$/,
    'a prefix is whole segments of endpoint names, such as text/ or text/minilm',
  );

/**
 * A name whose traffic goes to versions of endpoints: a fixed list with weights, or all versions below a prefix of whole
 * segments, the first weight for the newest. Under the name of an endpoint of its own it sets that endpoint's weights.
 */
export const splitSpec = z
  .strictObject({
    kind: z.literal('Split').default('Split'),
    name: endpointName,
    targets: z.array(splitTarget).min(1).max(64).optional(),
    weights: z.array(weight).min(1).max(64).optional(),
    /** Whole segments: `text` and `text/` are the endpoint `text` and all below it, never `texts`. */
    targetPrefix: splitPrefix.optional(),
    newestFirst: z.array(weight).min(1).max(64).optional(),
    sticky: z.strictObject({ header: z.string().min(1).max(128) }).optional(),
    access: z.strictObject({ inference: z.enum(['key', 'public']).default('key') }).prefault({}),
    description: z.string().max(4_000).default(''),
  })
  .superRefine((value, ctx) => {
    const fault = (path: string, message: string) => ctx.addIssue({ code: 'custom', path: [path], message });
    if (!value.targets === !value.targetPrefix) fault('targets', 'give either targets with weights, or targetPrefix');
    if (value.targets) {
      if (!value.weights) fault('weights', 'targets want one weight each');
      else if (value.weights.length !== value.targets.length)
        fault('weights', `wants ${value.targets.length} weights, one for each target, not ${value.weights.length}`);
      if (new Set(value.targets).size < value.targets.length) fault('targets', 'names a target twice');
      if (value.newestFirst) fault('newestFirst', 'goes with targetPrefix');
    }
    if (value.targetPrefix) {
      if (!value.newestFirst) fault('newestFirst', 'targetPrefix wants weights, the first for the newest version');
      if (value.weights) fault('weights', 'goes with targets; targetPrefix wants newestFirst');
    }
    for (const path of ['weights', 'newestFirst'] as const)
      if (value[path] && !value[path].some((one) => one > 0)) fault(path, 'at least one weight must be above zero');
  })
  .meta({ id: 'SplitSpec' });
export type SplitSpec = z.infer<typeof splitSpec>;
export type SplitSpecInput = z.input<typeof splitSpec>;

/** `split show`: where each share goes now. */
export const split = z
  .object({
    name: endpointName,
    generation: z.number().int(),
    spec: splitSpec,
    /** In the order of the targets, an endpoint as a whole with each version it serves; of a prefix newest first. */
    arms: z.array(
      z.object({
        /** As the spec names it; of a prefix `<endpoint>/<version>`. */
        target: z.string(),
        endpoint: z.string(),
        /** Null: an endpoint as a whole that serves nothing now. */
        version: z.number().int().nullable(),
        /** Of the requests, now. */
        weightPercent: z.number(),
        /** Why nothing goes there, whose share goes to the heaviest that is left. Null: it serves. */
        missing: z.string().nullable(),
      }),
    ),
    message: z.string(),
    updatedAt: z.string(),
    updatedBy: z.string(),
  })
  .meta({ id: 'Split' });
export type Split = z.infer<typeof split>;
