import { z } from 'zod';
import { observedModel, server } from './server.schema.ts';

const reason = z.string().max(1_000).default('');

/** `POST /servers/:server/drain`. `force`: do not wait until its deployments are ready elsewhere. */
export const drainServer = z.strictObject({ reason, force: z.boolean().default(false) }).meta({ id: 'DrainServer' });
export type DrainServer = z.infer<typeof drainServer>;

export const undrainServer = z.strictObject({ reason }).meta({ id: 'UndrainServer' });
export type UndrainServer = z.infer<typeof undrainServer>;

/** Bytes over the servers that report them; null: none does. `freeBytes`: what placement may still give away. */
const room = z.object({ totalBytes: z.number(), freeBytes: z.number() }).nullable();

/** `fleet pools` */
export const pool = z
  .object({
    name: z.string(),
    /** Those that all its servers share. */
    labels: z.record(z.string(), z.string()).optional(),
    servers: z.number().int(),
    live: z.number().int(),
    /** Out of service. */
    draining: z.number().int(),
    /** Models placed, once a server. */
    models: z.number().int(),
    endpoints: z.number().int(),
    ram: room,
    gpu: room,
  })
  .meta({ id: 'Pool' });
export type Pool = z.infer<typeof pool>;

/** One name in a server's document, or one that its Triton holds beside it. */
export const serverModel = z
  .object({
    name: z.string(),
    /** The server's document, as published, holds it. */
    desired: z.boolean(),
    /** As the agent reported it last; null: it has not spoken of it. */
    state: observedModel.shape.state.nullable(),
    /** Triton's own words, or the agent's where Triton has none. */
    reason: z.string().nullable(),
    since: z.string().nullable(),
    /** What it was measured to take on this kind of device; null: not known yet. */
    memory: z.object({ ramBytes: z.number(), gpuBytes: z.number() }).nullable(),
    /** Names in the same document that must be ready first. */
    needs: z.array(z.string()),
    endpoints: z.array(z.string()),
    /** What has to happen before it is as it should be; null: it is. */
    waitsFor: z.string().nullable(),
  })
  .meta({ id: 'ServerModel' });
export type ServerModel = z.infer<typeof serverModel>;

/** `fleet server show` */
export const serverDetail = z
  .object({
    ...server.shape,
    models: z.array(serverModel),
    ram: room,
    gpu: room,
    /** Variants of deployments that failed here for good, so that others took their place. */
    failures: z.array(z.object({ tritonModel: z.string(), reason: z.string() })),
  })
  .meta({ id: 'ServerDetail' });
export type ServerDetail = z.infer<typeof serverDetail>;
