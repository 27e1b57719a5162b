import { createHmac } from 'node:crypto';
import { type ChangeEvent, sha256Hex, type WebhookEvent, type WebhookPayload, webhookEvents } from '@perch/contracts';
import { backoffMs } from '@perch/platform';

/** Events of the outbox whose name for webhooks is another. */
const otherNames: Partial<Record<WebhookEvent, string>> = {
  'version.published': 'version.publish',
  'version.tagged': 'version.tag',
};
const sourceOf = (event: WebhookEvent): string => otherNames[event] ?? event;

/** Types in the outbox that webhooks are told of; the index `outbox_told` is over the same list. */
export const toldTypes: readonly string[] = webhookEvents.map(sourceOf);

/** Types in the outbox that a webhook wants; none named = all. */
export const wantedTypes = (events: readonly WebhookEvent[]): string[] =>
  events.length === 0 ? [...toldTypes] : events.map(sourceOf);

/** Names the thing once more as fields, so that a receiver need not take `subject` apart. */
function subjectFields(type: string, subject: string): Record<string, unknown> {
  const version = /^(.+)\/(\d+)$/.exec(subject);
  if (type.startsWith('version.') && version) return { model: version[1], version: Number(version[2]) };
  return { endpoint: subject };
}

/**
 * What is sent of an event. The id is made of the event itself: it is the same at every try, and another one for the
 * event that gets this number after the database was restored from a backup.
 */
export function payloadOf({ id, type, subject, at, data }: ChangeEvent): WebhookPayload {
  const told = webhookEvents.find((event) => sourceOf(event) === type) ?? type;
  const identity = `${id}-${sha256Hex(JSON.stringify([id, type, subject, at])).slice(0, 16)}`;
  return { id: identity, type: told, at, subject, data: { ...subjectFields(type, subject), ...data } };
}

/** `t=<unix seconds>,v1=<hex HMAC-SHA-256 of "<t>.<body>">` */
export function signatureOf(secret: string, body: string, seconds: number): string {
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}

/** What became of one sending: the status that was answered, or null and why there was none. */
export interface Sending {
  status: number | null;
  error: string | null;
  durationMs: number;
}

export interface DeliveryTry {
  sending: Sending;
  /** Tries of this event, this one included. */
  tries: number;
  /** Tries in a row that failed, this one included, over all events. */
  failures: number;
  eventAgeMs: number;
}
export type DeliveryStep = { step: 'delivered' } | { step: 'retry' | 'give_up'; waitMs: number };

const firstWaitMs = 1_000;
const mostWaitMs = 5 * 60_000;
/** A receiver that answers and refuses is asked so often. */
const mostRefusals = 5;
/** One that cannot take it now is asked until the event is so old: events are kept for 24 h. */
const oldestMs = 12 * 3_600_000;
const leastFailures = 3;

const delivered = ({ status }: Sending) => status !== null && status >= 200 && status < 300;
const refused = ({ status }: Sending) =>
  status !== null && status >= 300 && status < 500 && ![408, 425, 429].includes(status);

/** `waitMs`: until the next try, of this event or of the one after it. */
export function decideDelivery(
  { sending, tries, failures, eventAgeMs }: DeliveryTry,
  random: () => number,
): DeliveryStep {
  if (delivered(sending)) return { step: 'delivered' };
  if (refused(sending) && tries >= mostRefusals) return { step: 'give_up', waitMs: 0 };
  const over = !refused(sending) && failures >= leastFailures && eventAgeMs > oldestMs;
  return { step: over ? 'give_up' : 'retry', waitMs: backoffMs(failures, firstWaitMs, mostWaitMs, random) };
}
