import { z } from 'zod';
import { poolName } from './names.schema.ts';

/** Each role may do all that the ones before it may; `inference` may only call endpoints. */
export const roles = ['inference', 'viewer', 'publisher', 'operator', 'admin'] as const;
export const role = z.enum(roles);
export type Role = z.infer<typeof role>;

const scope = z.string().regex(/^[A-Za-z0-9._/-]{1,200}(\/\*)?$/, 'a scope is a name, or a prefix ending in /*');

export const createKey = z
  .strictObject({
    name: z.string().min(1).max(128),
    role,
    projects: z.array(scope).max(64).default([]),
    endpoints: z.array(scope).max(64).default([]),
    expiresAt: z.iso.datetime().optional(),
  })
  .meta({ id: 'CreateKey' });
export type CreateKey = z.infer<typeof createKey>;

/** A key that servers (of one pool) or routers join with. */
export const createJoinKey = z
  .strictObject({
    name: z.string().min(1).max(128),
    joins: z.enum(['server', 'router']),
    pool: poolName.default('default'),
  })
  .meta({ id: 'CreateJoinKey' });
export type CreateJoinKey = z.infer<typeof createJoinKey>;

export const apiKey = z
  .object({
    id: z.string(),
    name: z.string(),
    role: z.string(),
    projects: z.array(z.string()),
    endpoints: z.array(z.string()),
    createdAt: z.string(),
    expiresAt: z.string().nullable(),
    revokedAt: z.string().nullable(),
    /** Coarse: written at most once in five minutes. Absent for join keys. */
    lastUsedAt: z.string().nullable().optional(),
    /** Of join keys of servers only. */
    pool: z.string().nullable().optional(),
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof apiKey>;
/** The secret is shown once, here. */
export const createdKey = apiKey.extend({ secret: z.string() }).meta({ id: 'CreatedKey' });
export type CreatedKey = z.infer<typeof createdKey>;

/** Who acts: stands in generations and audit rows. */
export interface Actor {
  id: string;
  name: string;
  role: Role;
  projects: readonly string[];
  endpoints: readonly string[];
}
export const systemActor: Actor = { id: 'system', name: 'system', role: 'admin', projects: [], endpoints: [] };

export const auditRow = z
  .object({
    id: z.number().int(),
    at: z.string(),
    actor: z.string(),
    action: z.string(),
    subject: z.string(),
    detail: z.record(z.string(), z.unknown()),
    hash: z.string(),
    previousHash: z.string(),
  })
  .meta({ id: 'AuditRow' });
export type AuditRow = z.infer<typeof auditRow>;

/** Answer of `GET /api/v1/audit/verify`: the first row whose hash does not follow from its content and the row before. */
export const auditCheck = z
  .object({
    intact: z.boolean(),
    rows: z.number().int(),
    fault: z.object({ id: z.number().int(), reason: z.string() }).nullable(),
  })
  .meta({ id: 'AuditCheck' });
export type AuditCheck = z.infer<typeof auditCheck>;

export const whoami = z
  .object({
    id: z.string(),
    name: z.string(),
    role,
    projects: z.array(z.string()),
    endpoints: z.array(z.string()),
  })
  .meta({ id: 'Whoami' });

export const installationStatus = z
  .object({ version: z.string(), lineage: z.string(), confirmed: z.boolean() })
  .meta({ id: 'Status' });
export type InstallationStatus = z.infer<typeof installationStatus>;
