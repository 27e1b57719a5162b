import { Body, Controller, Get, Param, Put, Query, Res } from '@nestjs/common';
import { AppError, type ObservedReport, observedReport } from '@perch/contracts';
import { DocumentSource, ServerService } from '@perch/fleet';
import type { FastifyReply } from 'fastify';
import { answerPoll, Bearer, type Follow, follow, followerOf, Gone } from './caller.ts';

@Controller('internal/v1/servers/:id')
export class ServerController {
  constructor(
    private readonly servers: ServerService,
    private readonly documents: DocumentSource,
  ) {}

  @Get('desired')
  async desired(
    @Bearer() token: string,
    @Param('id') id: string,
    @Query({ schema: follow }) query: Follow,
    @Gone() gone: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    await this.requireOwn(token, id);
    const answer = await this.servers.desiredFor(id, followerOf(query), query.wait * 1_000, gone);
    return answerPoll(reply, answer, this.documents.stopping);
  }

  @Put('observed')
  async observed(
    @Bearer() token: string,
    @Param('id') id: string,
    @Body({ schema: observedReport }) report: ObservedReport,
  ) {
    await this.requireOwn(token, id);
    return this.servers.observed(id, report);
  }

  /** A server's token speaks only for that server. */
  private async requireOwn(token: string, id: string): Promise<void> {
    if ((await this.servers.authenticate(token)) !== id)
      throw new AppError('forbidden', `this token does not speak for server ${id.slice(0, 64)}`);
  }
}
