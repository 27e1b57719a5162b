import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import {
  type Actor,
  endpoint,
  endpointLog,
  endpointName,
  endpointStats,
  endpointWhy,
  switchEndpoint,
  versionNumber,
} from '@perch/contracts';
import { EndpointService, EndpointSwitchService, WhyService } from '@perch/endpoints';
import { RouterStatsService } from '@perch/fleet';
import { z } from 'zod';
import { EndpointLogService } from './endpoint-log.service.ts';
import { Allow, Answers, By, IfMatch } from './http.ts';

const Named = () => Param('endpoint', { schema: endpointName });
type Switch = z.output<typeof switchEndpoint>;

const logQuery = z.object({
  since: z.iso.datetime().optional(),
  after: z.coerce.number().int().min(0).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
});
const whyQuery = z.object({ version: versionNumber.optional() });

/** What is true of one endpoint now, and its switch. */
@Allow('operator')
@Controller('api/v1/endpoints/:endpoint')
export class EndpointTruthController {
  constructor(
    private readonly switches: EndpointSwitchService,
    private readonly reasons: WhyService,
    private readonly endpoints: EndpointService,
    private readonly counts: RouterStatsService,
    private readonly logs: EndpointLogService,
  ) {}

  @Get('why')
  @Allow('viewer')
  @Answers(endpointWhy, 'Why a version is served or not, link by link from the name to the traffic')
  why(@Named() name: string, @Query({ schema: whyQuery }) { version }: z.output<typeof whyQuery>) {
    return this.reasons.why(name, version ?? null);
  }

  @Get('stats')
  @Allow('viewer')
  @Answers(endpointStats, 'What routers counted by version since they began; ask twice for rates')
  async stats(@Named() name: string) {
    await this.endpoints.get(name);
    return this.counts.ofEndpoint(name);
  }

  @Get('logs')
  @Allow('viewer')
  @Answers(endpointLog, 'What happened to it, newest last, and what consoles of its servers said of its models')
  log(@Named() name: string, @Query({ schema: logQuery }) query: z.output<typeof logQuery>) {
    return this.logs.read(name, query);
  }

  @Post('stop')
  @HttpCode(200)
  @Answers(endpoint, 'Unload all of it and keep its spec; requests are told that it is stopped')
  stop(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: switchEndpoint }) { reason }: Switch,
    @IfMatch() expectedGeneration: number | undefined,
  ) {
    return this.switches.set(actor, name, true, { reason, expectedGeneration });
  }

  @Post('start')
  @HttpCode(200)
  @Answers(endpoint, 'Serve a stopped endpoint again, with the versions that its rule wants')
  start(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: switchEndpoint }) { reason }: Switch,
    @IfMatch() expectedGeneration: number | undefined,
  ) {
    return this.switches.set(actor, name, false, { reason, expectedGeneration });
  }
}
