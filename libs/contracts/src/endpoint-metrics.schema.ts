import { z } from 'zod';

export const metricName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'a metric is named by 1 to 64 of A-Z a-z 0-9 _, not starting with a digit');

const ascending = (values: readonly number[]) => values.every((value, at) => at === 0 || value > values[at - 1]!);

/** `scalar`: a histogram over `buckets` (upper bounds). `enum`: a count for each value. `value`: the last number given. */
export const endpointMetric = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('scalar'),
      buckets: z.array(z.number()).min(1).max(64).refine(ascending, 'buckets are upper bounds in ascending order'),
    }),
    z.strictObject({ type: z.literal('enum'), values: z.array(z.string().min(1).max(64)).min(1).max(64) }),
    z.strictObject({ type: z.literal('value') }),
  ])
  .meta({ id: 'EndpointMetric' });
export type EndpointMetric = z.infer<typeof endpointMetric>;

/**
 * Values of requests that become metrics of their endpoint. Each is what a module observes under that name; where it
 * observes none, the field of that name in the reply, or else in the request. `_latency`: seconds from body to reply.
 */
export const endpointMetrics = z
  .strictObject({
    variables: z
      .record(metricName, endpointMetric)
      .refine((variables) => Object.keys(variables).length <= 64, 'at most 64 metrics'),
    /** Share of requests whose fields are looked at. */
    sample: z.number().gt(0).max(1).default(1),
  })
  .meta({ id: 'EndpointMetrics' });
export type EndpointMetrics = z.infer<typeof endpointMetrics>;
