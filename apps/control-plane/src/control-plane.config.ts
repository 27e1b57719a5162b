import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { documentSchema, oldestDocumentSchema } from '@perch/contracts';
import { migrations } from '@perch/migrations';
import {
  booleanSetting,
  commonSettings,
  type Environment,
  listenAddress,
  readConfig,
  tlsSettings,
} from '@perch/platform';
import type { DatabaseOptions } from '@perch/platform/database';
import { z } from 'zod';

/** A secret short enough to be guessed is no secret. */
const secret = z.string().min(16, 'wants at least 16 characters');

function storeFault(text: string): string | undefined {
  if (/^s3:\/\/[a-z0-9][a-z0-9.-]{1,62}(\/.*)?$/.test(text)) return undefined;
  if (!text.startsWith('file://')) return 'wants file:///absolute/folder or s3://bucket/prefix';
  try {
    return isAbsolute(fileURLToPath(text)) ? undefined : 'wants an absolute folder';
  } catch {
    return 'wants file:///absolute/folder';
  }
}

const variables = z.object({
  ...commonSettings,
  ...tlsSettings,
  PERCH_LISTEN: listenAddress.prefault('127.0.0.1:8080'),
  PERCH_DATABASE_URL: z
    .string('wants postgres://user:password@host:port/database')
    .regex(/^postgres(ql)?:\/\/.+/, 'wants postgres://user:password@host:port/database'),
  PERCH_STORE_URL: z.string('wants file:///absolute/folder or s3://bucket/prefix').superRefine((text, ctx) => {
    const message = storeFault(text);
    if (message) ctx.addIssue({ code: 'custom', message });
  }),
  PERCH_S3_ENDPOINT: z.url({ protocol: /^https?$/, error: 'wants http(s)://host:port' }).optional(),
  PERCH_S3_REGION: z.string().default('us-east-1'),
  PERCH_S3_ACCESS_KEY_ID: z.string().optional(),
  PERCH_S3_SECRET_ACCESS_KEY: z.string().optional(),
  PERCH_S3_FORCE_PATH_STYLE: booleanSetting.optional(),
  PERCH_PUBLIC_URL: z.url({ protocol: /^https?$/, error: 'wants http(s)://host:port' }).optional(),
  PERCH_SIGNING_KEY: secret.optional(),
  /** How far `model upload --url` reaches; link-local addresses, where clouds hand out credentials, only with `any`. */
  PERCH_IMPORT_REACH: z.enum(['public', 'private', 'any']).default('private'),
  /** How far webhooks reach, likewise. */
  PERCH_WEBHOOK_REACH: z.enum(['public', 'private', 'any']).default('private'),
  /** What processing modules that publishers bind run in at least; see `ProcessingPolicy`. */
  PERCH_PUBLISHER_ISOLATION: z.enum(['worker', 'process']).default('worker'),
  PERCH_BOOTSTRAP_ADMIN_KEY: secret.optional(),
  PERCH_BOOTSTRAP_JOIN_KEY_SERVER: secret.optional(),
  PERCH_BOOTSTRAP_JOIN_KEY_ROUTER: secret.optional(),
  PERCH_MIGRATE_ON_START: booleanSetting.prefault('true'),
  /** Newest schema of the documents that agents and routers follow; one less while a fleet is being upgraded. */
  PERCH_DOCUMENT_SCHEMA: z.coerce.number().int().min(oldestDocumentSchema).max(documentSchema).default(documentSchema),
  PERCH_ROUTER_GRACE_MS: z.coerce.number().int().min(1_000).max(86_400_000).default(600_000),
});

/** Settings that are wrong only together. */
const pairs = [
  ['PERCH_TLS_CERT', 'PERCH_TLS_KEY'],
  ['PERCH_S3_ACCESS_KEY_ID', 'PERCH_S3_SECRET_ACCESS_KEY'],
] as const;
const settings = variables.superRefine((value, ctx) => {
  for (const [a, b] of pairs) {
    const alone =
      value[a] === undefined ? (value[b] === undefined ? undefined : b) : value[b] === undefined ? a : undefined;
    if (alone) ctx.addIssue({ code: 'custom', path: [alone], message: `wants ${alone === a ? b : a} beside it` });
  }
});
export type ControlPlaneConfig = z.output<typeof settings>;

/** Throws one `invalid` that lists every bad variable. */
export const readControlPlaneConfig = (env?: Environment): ControlPlaneConfig => readConfig(settings, env);

/** All that `migrate` needs. */
const migrateSettings = variables.pick({ PERCH_DATABASE_URL: true, PERCH_LOG_LEVEL: true });
export const readMigrateConfig = (env?: Environment) => readConfig(migrateSettings, env);

/** Injection token of the settings. */
export const CONFIG = Symbol('control plane settings');

export const databaseOptionsOf = ({
  PERCH_DATABASE_URL,
}: Pick<ControlPlaneConfig, 'PERCH_DATABASE_URL'>): DatabaseOptions => ({
  url: PERCH_DATABASE_URL,
  migrations,
  connectLater: true,
});
