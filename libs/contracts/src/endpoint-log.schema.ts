import { z } from 'zod';

/** What happened to an endpoint, or what the console of one of its servers said of its models. */
export const endpointLogLine = z
  .object({
    /** ISO; console lines carry the time at which their server reported them, or none. */
    at: z.string().nullable(),
    /** `perch`, or `server <name>`. */
    source: z.string(),
    actor: z.string().nullable(),
    action: z.string().nullable(),
    message: z.string(),
  })
  .meta({ id: 'EndpointLogLine' });
export type EndpointLogLine = z.infer<typeof endpointLogLine>;

/** Newest last. `next`: give it as `after` to hear what comes later. */
export const endpointLog = z
  .object({ items: z.array(endpointLogLine), next: z.number().int() })
  .meta({ id: 'EndpointLog' });
export type EndpointLog = z.infer<typeof endpointLog>;

/** Stopping and starting: why, for the history. */
export const switchEndpoint = z
  .strictObject({ reason: z.string().max(1_000).default('') })
  .prefault({})
  .meta({ id: 'SwitchEndpoint' });
