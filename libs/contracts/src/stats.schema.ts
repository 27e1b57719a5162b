import { z } from 'zod';
import { armStats } from './routing-table.schema.ts';

/** What one router counted for one version since its boot; a new `bootId` begins at nothing. `at`: when it said so. */
export const versionCount = z
  .object({
    version: z.number().int(),
    router: z.string(),
    routerName: z.string(),
    bootId: z.string(),
    at: z.string(),
    ...armStats.shape,
  })
  .meta({ id: 'VersionCount' });
export type VersionCount = z.infer<typeof versionCount>;

/**
 * `GET /endpoints/:endpoint/stats`: cumulative counts. Whoever wants rates asks twice and takes the difference of each
 * (router, boot, version). `now`: the database's clock, as `at`.
 */
export const endpointStats = z
  .object({ endpoint: z.string(), now: z.string(), counts: z.array(versionCount) })
  .meta({ id: 'EndpointStats' });
export type EndpointStats = z.infer<typeof endpointStats>;
