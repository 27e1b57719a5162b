import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query, Res } from '@nestjs/common';
import {
  type Actor,
  type EndpointSpec,
  endpoint,
  endpointGeneration,
  endpointName,
  endpointSpec,
  paged,
  rollbackEndpoint,
} from '@perch/contracts';
import { EndpointDetailService, EndpointService, nameSource, refuseKind } from '@perch/endpoints';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { Allow, Answers, By, Idempotent, IfMatch, pageOf, readCursor, requireEndpoint, setEtag } from './http.ts';
import { inScopes } from './scope.decide.ts';

const Named = () => Param('endpoint', { schema: endpointName });
/** Kinds that are not built yet are told so, not that their fields are wrong. */
const specBody = z.preprocess((value) => {
  refuseKind(value);
  return nameSource(value);
}, endpointSpec);
const listQuery = z.object({
  cursor: z.string().max(400).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});

@Allow('operator')
@Controller('api/v1')
export class EndpointController {
  constructor(
    private readonly endpoints: EndpointService,
    private readonly details: EndpointDetailService,
  ) {}

  @Get('endpoints')
  @Allow('viewer')
  @Answers(paged(endpoint), 'Endpoints in order of their names, with what serves them')
  async list(@By() actor: Actor, @Query({ schema: listQuery }) query: z.output<typeof listQuery>) {
    const after = readCursor(query.cursor);
    const rows = await this.endpoints.list(after === undefined ? null : String(after), query.limit + 1);
    const page = pageOf(rows, query.limit, ({ name }) => name);
    return { ...page, items: page.items.filter(({ name }) => inScopes(actor.endpoints, name)) };
  }

  @Post('endpoints')
  @Idempotent()
  @Answers(endpoint, 'Add an endpoint; 409 when it exists')
  create(@By() actor: Actor, @Body({ schema: specBody }) spec: EndpointSpec) {
    requireEndpoint(actor, spec.name);
    return this.endpoints.create(actor, spec);
  }

  @Get('endpoints/:endpoint')
  @Allow('viewer')
  @Answers(endpoint, 'One endpoint; its ETag is the generation')
  async get(@Named() name: string, @Res({ passthrough: true }) reply: FastifyReply) {
    const found = await this.details.get(name);
    setEtag(reply, found.generation);
    return found;
  }

  @Put('endpoints/:endpoint')
  @Answers(endpoint, 'Replace the spec; 412 when If-Match names another generation than the one in force')
  async replace(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: specBody }) spec: EndpointSpec,
    @IfMatch() expectedGeneration: number | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const replaced = await this.endpoints.replace(actor, name, spec, { expectedGeneration });
    setEtag(reply, replaced.generation);
    return replaced;
  }

  @Delete('endpoints/:endpoint')
  @HttpCode(204)
  @Answers(null, 'Remove an endpoint; its versions are unloaded when no router can send to them any more')
  remove(@By() actor: Actor, @Named() name: string, @IfMatch() expectedGeneration: number | undefined) {
    return this.endpoints.remove(actor, name, { expectedGeneration });
  }

  @Get('endpoints/:endpoint/generations')
  @Allow('viewer')
  @Answers(paged(endpointGeneration), 'Every spec the endpoint had, newest first')
  async generations(@Named() name: string) {
    return { items: await this.endpoints.generations(name), nextCursor: null };
  }

  @Post('endpoints/:endpoint/rollback')
  @HttpCode(200)
  @Answers(endpoint, 'Back to the spec of an older generation, as a new one')
  rollback(
    @By() actor: Actor,
    @Named() name: string,
    @Body({ schema: rollbackEndpoint }) { generation, reason }: z.output<typeof rollbackEndpoint>,
    @IfMatch() expectedGeneration: number | undefined,
  ) {
    return this.endpoints.rollback(actor, name, generation, { reason, expectedGeneration });
  }
}
