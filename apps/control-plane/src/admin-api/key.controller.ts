import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { JoinKeyService, KeyService } from '@perch/access';
import {
  type Actor,
  apiKey,
  type CreateJoinKey,
  type CreateKey,
  createdKey,
  createJoinKey,
  createKey,
  paged,
} from '@perch/contracts';
import { Allow, Answers, By, Idempotent, type PageQuery, pageOf, pageQuery, readTextCursor } from './http.ts';

@Controller('api/v1/keys')
@Allow('admin')
export class KeyController {
  constructor(private readonly keys: KeyService) {}

  @Get()
  @Answers(paged(apiKey), 'API keys, oldest first, without their secrets')
  async list(@Query({ schema: pageQuery }) { cursor, limit }: PageQuery) {
    return pageOf(await this.keys.list(limit + 1, readTextCursor(cursor)), limit, KeyService.positionOf);
  }

  @Post()
  @Idempotent('shown-once')
  @Answers(createdKey, 'Makes an API key; its secret is shown in this answer only')
  create(@Body({ schema: createKey }) body: CreateKey, @By() actor: Actor) {
    return this.keys.createKey(actor, body);
  }

  @Delete(':id')
  @HttpCode(204)
  @Answers(null, 'Revokes an API key')
  async revoke(@Param('id') id: string, @By() actor: Actor): Promise<void> {
    await this.keys.revoke(actor, id);
  }
}

@Controller('api/v1/join-keys')
@Allow('admin')
export class JoinKeyController {
  constructor(private readonly keys: JoinKeyService) {}

  @Get()
  @Answers(paged(apiKey), 'Join keys, oldest first, without their secrets')
  async list() {
    return { items: await this.keys.list(), nextCursor: null };
  }

  @Post()
  @Idempotent('shown-once')
  @Answers(
    createdKey,
    'Makes a key that servers of one pool, or routers, enrol with; its secret is shown in this answer only',
  )
  create(@Body({ schema: createJoinKey }) body: CreateJoinKey, @By() actor: Actor) {
    return this.keys.createJoinKey(actor, body);
  }

  @Delete(':id')
  @HttpCode(204)
  @Answers(null, 'Revokes a join key; who enrolled with it stays')
  async revoke(@Param('id') id: string, @By() actor: Actor): Promise<void> {
    await this.keys.revoke(actor, id);
  }
}
