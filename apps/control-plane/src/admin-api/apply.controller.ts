import { Body, Controller, HttpCode, Post, Query } from '@nestjs/common';
import { type Actor, applyResult, endpointName, endpointSpec, pipelineSpec, splitSpec } from '@perch/contracts';
import { EndpointService, nameSource, PipelineService, SplitService } from '@perch/endpoints';
import { z } from 'zod';
import { Allow, Answers, By, IfMatch, requireEndpoint } from './http.ts';

/** Without a kind it is an endpoint. */
const document = z.preprocess(
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return { kind: 'Endpoint', ...(nameSource(value) as object) };
  },
  z.discriminatedUnion('kind', [endpointSpec, splitSpec, pipelineSpec]),
);
const applyQuery = z.object({
  dryRun: z.enum(['true', 'false']).default('false'),
  /** For dry runs of splits and pipelines: names that the same files make, joined by commas. */
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
    private readonly pipelines: PipelineService,
  ) {}

  @Post()
  @HttpCode(200)
  @Answers(
    applyResult,
    'Make the endpoint, the split or the pipeline as the spec says; with dryRun only say what would change',
  )
  apply(
    @By() actor: Actor,
    @Body({ schema: document }) spec: z.output<typeof document>,
    @Query({ schema: applyQuery }) query: z.output<typeof applyQuery>,
    @IfMatch() expectedGeneration: number | undefined,
  ) {
    requireEndpoint(actor, spec.name);
    const dryRun = query.dryRun === 'true';
    const options = { dryRun, expectedGeneration, assume: dryRun ? query.assume : undefined };
    if (spec.kind === 'Split') return this.splits.apply(actor, spec, options);
    if (spec.kind === 'Pipeline') return this.pipelines.apply(actor, spec, options);
    return this.endpoints.apply(actor, spec, { dryRun, expectedGeneration });
  }
}
