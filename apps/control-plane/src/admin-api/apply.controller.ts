import { Body, Controller, HttpCode, Post, Query } from '@nestjs/common';
import { type Actor, applyResult, endpointName, endpointSpec, splitSpec } from '@perch/contracts';
import { EndpointService, nameSource, refuseUnbuilt, SplitService } from '@perch/endpoints';
import { z } from 'zod';
import { Allow, Answers, By, IfMatch, requireEndpoint } from './http.ts';

/** Kinds that are not built yet are told so, not that their fields are wrong; without a kind it is an endpoint. */
const document = z.preprocess(
  (value) => {
    refuseUnbuilt(value);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return { kind: 'Endpoint', ...(nameSource(value) as object) };
  },
  z.discriminatedUnion('kind', [endpointSpec, splitSpec]),
);
const applyQuery = z.object({
  dryRun: z.enum(['true', 'false']).default('false'),
  /** For dry runs of splits: names of endpoints that the same files make, joined by commas. */
  assume: z
    .string()
    .max(100_000)
    .transform((names) => names.split(','))
    .pipe(z.array(endpointName))
    .optional(),
});

@Allow('operator')
@Controller('api/v1/apply')
export class ApplyController {
  constructor(
    private readonly endpoints: EndpointService,
    private readonly splits: SplitService,
  ) {}

  @Post()
  @HttpCode(200)
  @Answers(applyResult, 'Make the endpoint or the split as the spec says; with dryRun only say what would change')
  apply(
    @By() actor: Actor,
    @Body({ schema: document }) spec: z.output<typeof document>,
    @Query({ schema: applyQuery }) query: z.output<typeof applyQuery>,
    @IfMatch() expectedGeneration: number | undefined,
  ) {
    requireEndpoint(actor, spec.name);
    const dryRun = query.dryRun === 'true';
    if (spec.kind === 'Split')
      return this.splits.apply(actor, spec, { dryRun, expectedGeneration, assume: dryRun ? query.assume : undefined });
    return this.endpoints.apply(actor, spec, { dryRun, expectedGeneration });
  }
}
