import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import { type Actor, endpoint, endpointName, paged, quarantineEntry, switchEndpoint } from '@perch/contracts';
import { EndpointService, QuarantineService } from '@perch/endpoints';
import { z } from 'zod';
import { Allow, Answers, By } from './http.ts';

const Named = () => Param('endpoint', { schema: endpointName });
const digest = z.string().regex(/^[0-9a-f]{8,64}$/, 'a digest is 8 to 64 of 0-9 a-f');

/** What people do about updates that a rollout refused, or that somebody holds. */
@Allow('operator')
@Controller('api/v1/endpoints/:endpoint')
export class EndpointTrafficController {
  constructor(
    private readonly endpoints: EndpointService,
    private readonly refused: QuarantineService,
  ) {}

  @Post('resume')
  @HttpCode(200)
  @Answers(endpoint, 'Let automatic updates go on that a rollback by a person holds')
  async resume(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: switchEndpoint }) { reason }: z.output<typeof switchEndpoint>,
  ) {
    await this.refused.resume(actor, name, reason);
    return this.endpoints.get(name);
  }

  @Get('quarantine')
  @Allow('viewer')
  @Answers(paged(quarantineEntry), 'Deployments that rollouts refused, newest first; none is deployed again by itself')
  async list(@Named() name: string) {
    return { items: await this.refused.list(name), nextCursor: null };
  }

  @Delete('quarantine/:digest')
  @HttpCode(200)
  @Answers(quarantineEntry, 'Release one, named by its digest or the first digits of it: the rule may deploy it again')
  release(@By() actor: Actor, @Named() name: string, @Param('digest', { schema: digest }) which: string) {
    return this.refused.release(actor, name, which);
  }
}
