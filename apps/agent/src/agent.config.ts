import { hostname } from 'node:os';
import { resolve } from 'node:path';
import {
  booleanSetting,
  commonSettings,
  type Environment,
  listenAddress,
  readConfig,
  tlsSettings,
} from '@perch/platform';
import { z } from 'zod';

const address = z.string('wants host:port').regex(/^.+:\d{1,5}$/, 'wants host:port');

const labels = z.string().transform((text, ctx) => {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter(Boolean);
  for (const pair of pairs)
    if (!/^[^=]+=/.test(pair))
      ctx.addIssue({ code: 'custom', message: `wants k=v,k=v; ${JSON.stringify(pair)} has no "="` });
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
});

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
);
const milliseconds = z.coerce.number('wants milliseconds').int().min(0);

const variables = z.object({
  ...commonSettings,
  ...tlsSettings,
  PERCH_LISTEN: listenAddress.prefault('127.0.0.1:8095'),
  PERCH_CONTROL_URL: z.url({ protocol: /^https?$/, error: 'wants http(s)://host:port of the control plane' }),
  PERCH_JOIN_KEY: z.string('wants the join key of a pool of servers').min(1),
  PERCH_DATA_DIR: z.string('wants a folder that outlives restarts').transform((path) => resolve(path)),
  PERCH_TRITON_HTTP: address,
  PERCH_TRITON_GRPC: address,
  PERCH_TRITON_METRICS: address.optional(),
  PERCH_TRITON_REPOSITORY: z
    .string("wants the folder of Triton's --model-repository")
    .transform((path) => resolve(path)),
  PERCH_ADVERTISE_HTTP: address.optional(),
  PERCH_ADVERTISE_GRPC: address.optional(),
  PERCH_LABELS: labels.prefault(''),
  PERCH_NAME: z.string().min(1).max(128).default(hostname().slice(0, 128)),
  PERCH_HOST: z.string().min(1).max(128).default(hostname().slice(0, 128)),
  PERCH_TRITON_BACKENDS: list.optional(),
  PERCH_TRITON_BACKEND_DIR: z.string().optional(),
  PERCH_TENSORRT_VERSION: z
    .string()
    .regex(/^\d+(\.\d+)*$/, 'wants a version like 10.7.0')
    .optional(),
  PERCH_ONNXRUNTIME_VERSION: z
    .string()
    .regex(/^\d+(\.\d+)*$/, 'wants a version like 1.20.1')
    .optional(),
  PERCH_TRITON_PID: z.coerce.number().int().positive().optional(),
  PERCH_RESTART_FIRST_MS: milliseconds.default(1_000),
  PERCH_RESTART_MAX_MS: milliseconds.default(30_000),
  PERCH_RESTART_RESET_MS: milliseconds.default(60_000),
  PERCH_EXIT_TIMEOUT_MS: milliseconds.optional(),
  PERCH_STUCK_PATIENCE_MS: milliseconds.default(60_000),
  PERCH_DRAIN_TIMEOUT_MS: milliseconds.default(0),
  PERCH_PEERS: booleanSetting.or(z.enum(['on', 'off']).transform((text) => text === 'on')).default(false),
  PERCH_PEER_LISTEN: listenAddress.prefault('127.0.0.1:8096'),
  PERCH_PEER_ADVERTISE: address.optional(),
  PERCH_LOAD_DEADLINE_MS: z.coerce.number().int().min(1_000).default(600_000),
  PERCH_CACHE_KEEP_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(20 * 1024 ** 3),
});
const settings = variables.superRefine((value, ctx) => {
  if ((value.PERCH_TLS_CERT === undefined) === (value.PERCH_TLS_KEY === undefined)) return;
  const alone = value.PERCH_TLS_CERT === undefined ? 'PERCH_TLS_KEY' : 'PERCH_TLS_CERT';
  const other = alone === 'PERCH_TLS_KEY' ? 'PERCH_TLS_CERT' : 'PERCH_TLS_KEY';
  ctx.addIssue({ code: 'custom', path: [alone], message: `wants ${other} beside it` });
});
export type AgentConfig = z.output<typeof settings>;

/** Throws one `invalid` that lists every bad variable. */
export const readAgentConfig = (env?: Environment): AgentConfig => readConfig(settings, env);

/**
 * What a supervised server gets of our environment: all but our own settings, since models run in it and the join key is
 * none of theirs.
 */
export const serverEnvironment = (env: Environment = process.env): Environment =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('PERCH_')));

/** Injection token of the settings. */
export const CONFIG = Symbol('agent settings');
