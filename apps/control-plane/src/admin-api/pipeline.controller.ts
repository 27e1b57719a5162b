import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query, Res } from '@nestjs/common';
import {
  type Actor,
  endpointName,
  type PipelineSpec,
  paged,
  pipeline,
  pipelineGeneration,
  pipelineSpec,
  rollbackEndpoint,
} from '@perch/contracts';
import { PipelineService } from '@perch/endpoints';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { Allow, Answers, By, Idempotent, IfMatch, type PageQuery, pageByName, pageQuery, setEtag } from './http.ts';

/** A pipeline is a name that requests are sent to, so keys are scoped to it as to an endpoint. */
const Named = () => Param('pipeline', { schema: endpointName });

@Allow('operator')
@Controller('api/v1/pipelines')
export class PipelineController {
  constructor(private readonly pipelines: PipelineService) {}

  @Get()
  @Allow('viewer')
  @Answers(paged(pipeline), 'Pipelines in order of their names, with what runs each node now')
  list(@By() actor: Actor, @Query({ schema: pageQuery }) query: PageQuery) {
    return pageByName(actor, query, (after, limit) => this.pipelines.list(after, limit));
  }

  @Post()
  @Idempotent()
  @Answers(pipeline, 'Add a pipeline; 409 when it exists')
  create(@By() actor: Actor, @Body({ schema: pipelineSpec }) spec: PipelineSpec) {
    return this.pipelines.create(actor, spec);
  }

  @Get(':pipeline')
  @Allow('viewer')
  @Answers(pipeline, 'One pipeline; its ETag is the generation')
  async get(@Named() name: string, @Res({ passthrough: true }) reply: FastifyReply) {
    const found = await this.pipelines.get(name);
    setEtag(reply, found.generation);
    return found;
  }

  @Put(':pipeline')
  @Answers(pipeline, 'Replace the spec; 412 when If-Match names another generation than the one in force')
  async replace(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: pipelineSpec }) spec: PipelineSpec,
    @IfMatch() expectedGeneration: number | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const replaced = await this.pipelines.replace(actor, name, spec, { expectedGeneration });
    setEtag(reply, replaced.generation);
    return replaced;
  }

  @Delete(':pipeline')
  @HttpCode(204)
  @Answers(null, 'Remove a pipeline; the endpoints that it asked stay')
  remove(@By() actor: Actor, @Named() name: string, @IfMatch() expectedGeneration: number | undefined) {
    return this.pipelines.remove(actor, name, { expectedGeneration });
  }

  @Get(':pipeline/generations')
  @Allow('viewer')
  @Answers(paged(pipelineGeneration), 'Every spec the pipeline had, newest first')
  async generations(@Named() name: string) {
    return { items: await this.pipelines.generations(name), nextCursor: null };
  }

  @Post(':pipeline/rollback')
  @HttpCode(200)
  @Answers(pipeline, 'Back to the spec of an older generation, as a new one')
  rollback(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: rollbackEndpoint }) { generation, reason }: z.output<typeof rollbackEndpoint>,
    @IfMatch() expectedGeneration: number | undefined,
  ) {
    return this.pipelines.rollback(actor, name, generation, { reason, expectedGeneration });
  }
}
