import { z } from 'zod';

export const webhookEvents = [
  'version.published', 'version.tagged', 'deployment.ready', 'deployment.failed', 'rollout.started', 'rollout.step',
  'rollout.waiting', 'rollout.held', 'rollout.promoted', 'rollout.rolled_back', 'rollout.aborted',
] as const; // biome-ignore format: one list
export const webhookEvent = z.enum(webhookEvents);
export type WebhookEvent = (typeof webhookEvents)[number];

const webhookUrl = z
  .url({ protocol: /^https?$/, error: 'wants http(s)://host/path' })
  .max(2_000)
  .refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return !url?.username && !url?.password;
  }, 'wants a URL without user and password; the signature says who calls');

export const webhookName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a webhook name is 1 to 63 of a-z 0-9 -');

/** `secret` left out: one is made and shown once. Empty `events`: all of them. */
export const createWebhook = z
  .strictObject({
    name: webhookName,
    url: webhookUrl,
    events: z.array(webhookEvent).max(32).default([]),
    secret: z.string().min(16).max(200).optional(),
  })
  .meta({ id: 'CreateWebhook' });
export type CreateWebhook = z.infer<typeof createWebhook>;

export const webhook = z
  .object({
    name: z.string(),
    url: z.string(),
    events: z.array(webhookEvent),
    createdAt: z.string(),
    createdBy: z.string(),
    /** Newest event that was delivered or given up; null: none yet. */
    deliveredTo: z.number().int().nullable(),
    pending: z.number().int(),
    lastError: z.string().nullable(),
    /** Tries of the event that is due; 0: it was not tried yet, or nothing is due. */
    tries: z.number().int().optional(),
    nextTryAt: z.string().nullable().optional(),
    /** Events that were given up since it was added, and which was the last. */
    givenUp: z.number().int().optional(),
    lastGivenUp: z.string().nullable().optional(),
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof webhook>;
export const createdWebhook = z.object({ ...webhook.shape, secret: z.string() }).meta({ id: 'CreatedWebhook' });
export type CreatedWebhook = z.infer<typeof createdWebhook>;

/** What is POSTed. `id` is the same each time an event is sent; `type` is one of `webhookEvents`, or `webhook.test`. */
export const webhookPayload = z
  .object({
    id: z.string(),
    type: z.string(),
    at: z.string(),
    /** `<project>/<name>/<version>` of a version, else the endpoint. */
    subject: z.string(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'WebhookPayload' });
export type WebhookPayload = z.infer<typeof webhookPayload>;

/** `POST /webhooks/:name/test`: what the receiver did with a `webhook.test`. */
export const webhookTest = z
  .object({
    delivered: z.boolean(),
    id: z.string(),
    status: z.number().int().nullable(),
    durationMs: z.number(),
    error: z.string().nullable(),
  })
  .meta({ id: 'WebhookTest' });
export type WebhookTest = z.infer<typeof webhookTest>;
