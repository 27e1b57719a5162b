import { Controller, Get, Headers, Query, Req, Res } from '@nestjs/common';
import { type Actor, AppError, changeEvent } from '@perch/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { EventService } from './event.service.ts';
import { Allow, Answers, By } from './http.ts';

const eventQuery = z.object({ after: z.coerce.number().int().min(0).optional() });

@Controller('api/v1/events')
@Allow('viewer')
export class EventController {
  constructor(private readonly events: EventService) {}

  @Get()
  @Answers(changeEvent, 'Changes as server-sent events, from now on or after `Last-Event-ID`')
  async follow(
    @Query({ schema: eventQuery }) { after }: z.output<typeof eventQuery>,
    @Headers('last-event-id') lastId: string | undefined,
    @By() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (lastId !== undefined && !/^\d{1,15}$/.test(lastId))
      throw new AppError('invalid', `Last-Event-ID: wants the number of an event, got ${lastId.slice(0, 40)}`);
    await this.events.follow(actor, lastId === undefined ? after : Number(lastId), request, reply);
  }
}
