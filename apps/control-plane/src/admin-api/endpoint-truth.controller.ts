import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import { type Actor, endpoint, endpointName, switchEndpoint } from '@perch/contracts';
import { EndpointSwitchService } from '@perch/endpoints';
import type { z } from 'zod';
import { Allow, Answers, By, IfMatch } from './http.ts';

const Named = () => Param('endpoint', { schema: endpointName });
type Switch = z.output<typeof switchEndpoint>;

/** What is true of one endpoint now, and its switch. */
@Allow('operator')
@Controller('api/v1/endpoints/:endpoint')
export class EndpointTruthController {
  constructor(private readonly switches: EndpointSwitchService) {}

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
