import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type CreatedWebhook,
  type CreateWebhook,
  type Webhook,
  type WebhookTest,
} from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { actorText } from './audit.service.ts';
import { ChangeService } from './change.service.ts';
import { newWebhookSecret } from './secret.ts';
import { WebhookClient } from './webhook.client.ts';
import { type WebhookRow, WebhookStore } from './webhook.store.ts';

const shown = (row: WebhookRow, pending: number): Webhook => ({
  name: row.name,
  url: row.url,
  events: row.events,
  createdAt: row.createdAt,
  createdBy: row.createdBy,
  deliveredTo: row.doneTo > row.beginsAfter ? row.doneTo : null,
  pending,
  lastError: row.lastError,
  tries: row.tries,
  nextTryAt: row.waitMs > 0 ? row.nextTryAt : null,
  givenUp: row.givenUp,
  lastGivenUp: row.lastGivenUp,
});

const unknown = (name: string) =>
  new AppError('not_found', `webhook ${name} does not exist; "perch webhook list" shows those there are`);

/** Addresses that are told of events. */
@Injectable()
export class WebhookService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: WebhookStore,
    private readonly changes: ChangeService,
    private readonly client: WebhookClient,
  ) {}

  /** It is told of what happens from now on. The secret is in this answer and never shown again. Throws `conflict`. */
  async add(actor: Actor, { name, url, events, secret = newWebhookSecret() }: CreateWebhook): Promise<CreatedWebhook> {
    const wanted = [...new Set(events)];
    return this.transactions.run(async (tx) => {
      const createdBy = actorText(actor);
      const row = await this.store.insert(tx, { name, url, events: wanted, secret, createdBy });
      if (!row) throw new AppError('conflict', `webhook ${name} exists; remove it first, or take another name`);
      // Paths and queries of such URLs are often secrets themselves.
      await this.changes.record(tx, actor, 'webhook.create', name, { origin: new URL(url).origin, events: wanted });
      return { ...shown(row, 0), secret };
    });
  }

  /** In order of their names. */
  async list(limit: number, after?: string): Promise<Webhook[]> {
    const tx = this.transactions.manager;
    const rows = await this.store.list(tx, after, limit);
    return Promise.all(rows.map((row) => this.shown(tx, row)));
  }

  async get(name: string): Promise<Webhook> {
    const tx = this.transactions.manager;
    return this.shown(tx, await this.row(tx, name));
  }

  async remove(actor: Actor, name: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (!(await this.store.remove(tx, name))) throw unknown(name);
      await this.changes.record(tx, actor, 'webhook.remove', name, {});
    });
  }

  /** Sends one `webhook.test` at once, beside the events that may be waiting. */
  async test(actor: Actor, name: string, now = new Date()): Promise<WebhookTest> {
    const row = await this.row(this.transactions.manager, name);
    const id = `test-${randomUUID()}`;
    const data = { webhook: name, by: actorText(actor) };
    const payload = { id, type: 'webhook.test', at: now.toISOString(), subject: name, data };
    const { status, error, durationMs } = await this.client.send(row, payload);
    const delivered = status !== null && status >= 200 && status < 300;
    return { delivered, id, status, durationMs, error };
  }

  private async row(tx: Tx, name: string): Promise<WebhookRow> {
    const row = await this.store.find(tx, name);
    if (!row) throw unknown(name);
    return row;
  }

  private async shown(tx: Tx, row: WebhookRow): Promise<Webhook> {
    return shown(row, await this.store.pending(tx, row));
  }
}
