import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query, Res } from '@nestjs/common';
import { type Actor, endpointName, paged, type SplitSpec, split, splitSpec } from '@perch/contracts';
import { SplitService } from '@perch/endpoints';
import type { FastifyReply } from 'fastify';
import { Allow, Answers, By, Idempotent, IfMatch, type PageQuery, pageByName, pageQuery, setEtag } from './http.ts';

/** A split is a name that requests are sent to, so keys are scoped to it as to an endpoint. */
const Named = () => Param('split', { schema: endpointName });

@Allow('operator')
@Controller('api/v1/splits')
export class SplitController {
  constructor(private readonly splits: SplitService) {}

  @Get()
  @Allow('viewer')
  @Answers(paged(split), 'Splits in order of their names, with where each share goes now')
  list(@By() actor: Actor, @Query({ schema: pageQuery }) query: PageQuery) {
    return pageByName(actor, query, (after, limit) => this.splits.list(after, limit));
  }

  @Post()
  @Idempotent()
  @Answers(split, 'Add a split; 409 when it exists')
  create(@By() actor: Actor, @Body({ schema: splitSpec }) spec: SplitSpec) {
    return this.splits.create(actor, spec);
  }

  @Get(':split')
  @Allow('viewer')
  @Answers(split, 'One split; its ETag is the generation')
  async get(@Named() name: string, @Res({ passthrough: true }) reply: FastifyReply) {
    const found = await this.splits.get(name);
    setEtag(reply, found.generation);
    return found;
  }

  @Put(':split')
  @Answers(split, 'Replace the spec; 412 when If-Match names another generation than the one in force')
  async replace(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: splitSpec }) spec: SplitSpec,
    @IfMatch() expectedGeneration: number | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const replaced = await this.splits.replace(actor, name, spec, { expectedGeneration });
    setEtag(reply, replaced.generation);
    return replaced;
  }

  @Delete(':split')
  @HttpCode(204)
  @Answers(null, 'Remove a split; the endpoints it sent to go on under their own names')
  remove(@By() actor: Actor, @Named() name: string, @IfMatch() expectedGeneration: number | undefined) {
    return this.splits.remove(actor, name, { expectedGeneration });
  }
}
