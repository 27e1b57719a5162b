import { availableParallelism, hostname } from 'node:os';
import { commonSettings, type ListenAddress, listenAddress, readConfig, tlsSettings } from '@perch/platform';
import type { IsolationSettings } from '@perch/processing/host';
import { z } from 'zod';

const settings = z.object({
  ...commonSettings,
  ...tlsSettings,
  PERCH_LISTEN: listenAddress.default({ host: '127.0.0.1', port: 8090 }),
  PERCH_CONTROL_URL: z.url({ protocol: /^https?$/ }),
  PERCH_JOIN_KEY: z.string().optional(),
  PERCH_DATA_DIR: z.string().min(1),
  PERCH_WORKERS: z
    .union(
      [z.literal('auto'), z.coerce.number('wants auto or a number').int().min(1).max(256)],
      'wants auto or 1 to 256',
    )
    .default(1),
  PERCH_TRITON_TRANSPORT: z.enum(['http', 'grpc']).default('http'),
  PERCH_NAME: z.string().min(1).max(128).optional(),
  PERCH_MODULE_WORKERS: z.coerce.number().int().min(1).max(64).optional(),
  PERCH_MODULE_HEAP_MB: z.coerce.number().int().min(16).max(65_536).default(256),
  PERCH_MODULE_MEMORY_MB: z.coerce.number().int().min(64).max(262_144).default(1_024),
  PERCH_MODULE_LOAD_TIMEOUT_MS: z.coerce.number().int().min(100).max(600_000).default(30_000),
  PERCH_STOP_DELAY_MS: z.coerce.number().int().min(0).max(600_000).default(1_000),
});

export interface RouterConfig {
  logLevel: string;
  listen: ListenAddress;
  /** Without a slash at its end. */
  controlUrl: string;
  /** Not needed once a token is on disk. */
  joinKey: string | undefined;
  dataDir: string;
  workers: number;
  transport: 'http' | 'grpc';
  name: string;
  /** Of registered modules outside of this process. */
  modules: Partial<IsolationSettings>;
  /** How long connections are still taken after SIGTERM; each is answered and told to close. */
  stopDelayMs: number;
  tls: { certFile: string; keyFile: string } | undefined;
}

/** Throws one `invalid` that lists every bad variable. */
export function readRouterConfig(env: Record<string, string | undefined> = process.env): RouterConfig {
  const values = readConfig(settings, env);
  const { PERCH_TLS_CERT: certFile, PERCH_TLS_KEY: keyFile } = values;
  return {
    logLevel: values.PERCH_LOG_LEVEL,
    listen: values.PERCH_LISTEN,
    controlUrl: values.PERCH_CONTROL_URL.replace(/\/+$/, ''),
    joinKey: values.PERCH_JOIN_KEY,
    dataDir: values.PERCH_DATA_DIR,
    workers: values.PERCH_WORKERS === 'auto' ? availableParallelism() : values.PERCH_WORKERS,
    transport: values.PERCH_TRITON_TRANSPORT,
    name: values.PERCH_NAME ?? hostname(),
    modules: {
      ...(values.PERCH_MODULE_WORKERS === undefined ? {} : { mostCells: values.PERCH_MODULE_WORKERS }),
      heapMb: values.PERCH_MODULE_HEAP_MB,
      processMb: values.PERCH_MODULE_MEMORY_MB,
      offHeapMb: values.PERCH_MODULE_MEMORY_MB,
      loadLimitMs: values.PERCH_MODULE_LOAD_TIMEOUT_MS,
    },
    stopDelayMs: values.PERCH_STOP_DELAY_MS,
    tls: certFile && keyFile ? { certFile, keyFile } : undefined,
  };
}
