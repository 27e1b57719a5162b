import { Body, Controller, Get, Param, Put, Query, Res } from '@nestjs/common';
import { AppError, type RouterReport, routerReport } from '@perch/contracts';
import { DocumentSource, RouterService, RouterStatsService } from '@perch/fleet';
import { EvidenceService } from '@perch/promotion';
import type { FastifyReply } from 'fastify';
import { answerPoll, Bearer, type Follow, follow, followerOf, Gone } from './caller.ts';

@Controller('internal/v1')
export class RouterController {
  constructor(
    private readonly routers: RouterService,
    private readonly documents: DocumentSource,
    private readonly stats: RouterStatsService,
    private readonly evidence: EvidenceService,
  ) {}

  @Get('routing-table')
  async table(
    @Bearer() token: string,
    @Query({ schema: follow }) query: Follow,
    @Gone() gone: AbortSignal,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    await this.routers.authenticate(token);
    const answer = await this.routers.tableFor(followerOf(query), query.wait * 1_000, gone);
    return answerPoll(reply, answer, this.documents.stopping);
  }

  @Put('routers/:id/report')
  async report(@Bearer() token: string, @Param('id') id: string, @Body({ schema: routerReport }) report: RouterReport) {
    if ((await this.routers.authenticate(token)) !== id)
      throw new AppError('forbidden', `this token does not speak for router ${id.slice(0, 64)}`);
    const answer = await this.routers.report(id, report);
    await this.stats.take(id, report);
    await this.evidence.take(id, report.bootId, report.evidence ?? []);
    return answer;
  }
}
