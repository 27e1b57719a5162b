import { Inject, Injectable } from '@nestjs/common';
import { type CounterMetric, LOGGER, type Logger, Metrics } from '@perch/platform';
import { type Outcome, Transactions, type Tx } from '@perch/platform/database';
import { WebhookClient } from './webhook.client.ts';
import { decideDelivery, payloadOf, type Sending } from './webhook.decide.ts';
import { type DueEvent, type WebhookRow, WebhookStore } from './webhook.store.ts';

/** Events that one pass sends at most; the next pass goes on. */
const mostAPass = 100;

const whyNot = ({ status, error }: Sending) => error ?? `answered ${status}`;

/**
 * Tells one webhook of its events, oldest first, one after the other. What was sent is noted after it was answered: a
 * crash in between sends it again, with the same id.
 */
@Injectable()
export class WebhookDeliveryService {
  private readonly outcomes: CounterMetric<'outcome'>;

  constructor(
    private readonly transactions: Transactions,
    private readonly store: WebhookStore,
    private readonly client: WebhookClient,
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.outcomes = metrics.counter(
      'perch_webhook_deliveries_total',
      'Tries to tell a webhook of an event by outcome: delivered, retry, give_up.',
      ['outcome'],
    );
  }

  /** Webhooks that events wait for. */
  behind(): Promise<string[]> {
    return this.store.behind(this.transactions.manager);
  }

  async deliver(name: string, signal: AbortSignal): Promise<Outcome> {
    const tx = this.transactions.manager;
    for (let sent = 0; sent < mostAPass; sent += 1) {
      const hook = await this.store.find(tx, name);
      if (!hook) return { again: 'on-change' };
      if (hook.waitMs > 0) return { again: 'after', ms: hook.waitMs };
      const event = await this.store.nextEvent(tx, hook);
      if (!event) return { again: 'on-change' };
      const sending = await this.client.send(hook, payloadOf(event), signal);
      if (signal.aborted) break; // whoever goes on sends it again
      await this.note(tx, hook, event, sending);
    }
    return { again: 'after', ms: 0 };
  }

  private async note(tx: Tx, hook: WebhookRow, event: DueEvent, sending: Sending): Promise<void> {
    const tried = { tries: hook.tries + 1, failures: hook.failures + 1, eventAgeMs: event.ageMs };
    const next = decideDelivery({ sending, ...tried }, Math.random);
    this.outcomes.add({ outcome: next.step });
    if (next.step === 'delivered') return this.store.delivered(tx, hook, event.id);
    const error = whyNot(sending);
    if (next.step === 'retry') return this.store.failed(tx, hook, error, next.waitMs);
    const words = `event ${event.id} (${event.type} of ${event.subject}) after ${tried.tries} tries: ${error}`;
    this.logger.warn('event given up for a webhook', {
      webhook: hook.name,
      event: event.id,
      tries: tried.tries,
      error,
    });
    await this.store.gaveUp(tx, hook, event.id, { error, words, waitMs: next.waitMs });
  }
}
