import { z } from 'zod';

/** The links from an endpoint's name to its traffic, in this order. */
export const whySteps = [
  'endpoint',
  'model',
  'version',
  'rule',
  'deployment',
  'placement',
  'server',
  'route',
  'router',
  'traffic',
] as const;

/** One link: `waiting` comes about by itself, `failed` does not. `since`: ISO time, null when not known. */
export const whyStep = z
  .object({
    step: z.enum(whySteps),
    state: z.enum(['ok', 'waiting', 'failed']),
    message: z.string(),
    since: z.string().nullable(),
    whatToDo: z.string().nullable(),
  })
  .meta({ id: 'WhyStep' });
export type WhyStep = z.infer<typeof whyStep>;

/** One answer to "why is my version not served?". `version` null: the model has none. */
export const endpointWhy = z
  .object({
    endpoint: z.string(),
    version: z.number().int().nullable(),
    /** It gets a share of the traffic on at least one live router. */
    served: z.boolean(),
    summary: z.string(),
    chain: z.array(whyStep),
  })
  .meta({ id: 'EndpointWhy' });
export type EndpointWhy = z.infer<typeof endpointWhy>;
