import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { WebhookService } from '@perch/access';
import {
  type Actor,
  type CreateWebhook,
  createdWebhook,
  createWebhook,
  paged,
  webhook,
  webhookName,
  webhookTest,
} from '@perch/contracts';
import { Allow, Answers, By, Idempotent, type PageQuery, pageOf, pageQuery, readTextCursor } from './http.ts';

const Named = () => Param('name', { schema: webhookName });

/** For admins alone: a webhook is told of everything, whatever the scopes of keys. */
@Controller('api/v1/webhooks')
@Allow('admin')
export class WebhookController {
  constructor(private readonly webhooks: WebhookService) {}

  @Get()
  @Answers(paged(webhook), 'Webhooks in order of their names, with what waits for them and why')
  async list(@Query({ schema: pageQuery }) { cursor, limit }: PageQuery) {
    return pageOf(await this.webhooks.list(limit + 1, readTextCursor(cursor)), limit, ({ name }) => name);
  }

  @Post()
  @Idempotent('shown-once')
  @Answers(createdWebhook, 'Tells an address of events from now on; its secret is shown in this answer only')
  create(@Body({ schema: createWebhook }) body: CreateWebhook, @By() actor: Actor) {
    return this.webhooks.add(actor, body);
  }

  @Get(':name')
  @Answers(webhook, 'One webhook, with what waits for it and why')
  get(@Named() name: string) {
    return this.webhooks.get(name);
  }

  @Delete(':name')
  @HttpCode(204)
  @Answers(null, 'Removes a webhook; what waits for it is forgotten')
  async remove(@Named() name: string, @By() actor: Actor): Promise<void> {
    await this.webhooks.remove(actor, name);
  }

  @Post(':name/test')
  @HttpCode(200)
  @Answers(webhookTest, 'Sends a webhook.test now and says what the receiver answered')
  test(@Named() name: string, @By() actor: Actor) {
    return this.webhooks.test(actor, name);
  }
}
