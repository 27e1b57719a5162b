import { z } from 'zod';

export const webhookEvents = [
  'version.published', 'version.tagged', 'deployment.ready', 'deployment.failed', 'rollout.started', 'rollout.step',
  'rollout.waiting', 'rollout.held', 'rollout.promoted', 'rollout.rolled_back',
] as const; // biome-ignore format: one list
export type WebhookEvent = (typeof webhookEvents)[number];

/** `secret` left out: one is made and shown once. Empty `events`: all of them. */
export const createWebhook = z
  .strictObject({
    name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a webhook name is 1 to 63 of a-z 0-9 -'),
    url: z.url({ protocol: /^https?$/ }).max(2_000),
    events: z.array(z.enum(webhookEvents)).max(32).default([]),
    secret: z.string().min(16).max(200).optional(),
  })
  .meta({ id: 'CreateWebhook' });
export type CreateWebhook = z.infer<typeof createWebhook>;

export const webhook = z
  .object({
    name: z.string(),
    url: z.string(),
    events: z.array(z.enum(webhookEvents)),
    createdAt: z.string(),
    createdBy: z.string(),
    /** Newest event that was delivered or given up; null: none yet. */
    deliveredTo: z.number().int().nullable(),
    pending: z.number().int(),
    lastError: z.string().nullable(),
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof webhook>;
export const createdWebhook = z.object({ ...webhook.shape, secret: z.string() }).meta({ id: 'CreatedWebhook' });
export type CreatedWebhook = z.infer<typeof createdWebhook>;
