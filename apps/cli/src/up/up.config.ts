import { isAbsolute, join, resolve } from 'node:path';
import { AppError } from '@perch/contracts';
import type { CliSettings } from '../cli.config.ts';

export interface UpOptions {
  dataDir: string;
  /** Ports that a person asked for; undefined: the usual one if it is free, else any. 0: any. */
  controlPort: number | undefined;
  routerPort: number | undefined;
  /** An own database instead of the embedded one. */
  postgresUrl: string | undefined;
  /** PERCH_STORE_URL and PERCH_S3_… for the control plane ({}: as the environment says); undefined: a folder below the data. */
  store: Record<string, string> | undefined;
  /** Model servers, each with its agent. */
  servers: number;
  /** Serve on a real Triton. */
  triton: boolean;
  toolsDir: string | undefined;
  configDir: string;
  /** Name of the context that is written when all is ready. */
  contextName: string;
  /** What every child inherits. */
  environment: Record<string, string | undefined>;
}

function port(value: unknown, flag: string): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isInteger(number) || number < 0 || number > 65_535)
    throw new AppError('invalid', `${flag}: wants a port from 0 (any) to 65535, got "${value}"`);
  return number;
}

function serverCount(value: unknown): number {
  const count = Number(value ?? 1);
  if (!Number.isInteger(count) || count < 1 || count > 16)
    throw new AppError('invalid', `--servers: wants a count from 1 to 16, got "${value}"`);
  return count;
}

/** `s3://bucket/prefix` (endpoint and keys from PERCH_S3_…), or `http://key:secret@host:9000/bucket/prefix`. */
export function storeSettings(text: string | undefined): Record<string, string> | undefined {
  if (text === undefined) return undefined;
  if (/^s3:\/\/[^/]+/.test(text)) return { PERCH_STORE_URL: text };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const [bucket, ...prefix] = url?.pathname.split('/').filter(Boolean) ?? [];
  if (!url || !['http:', 'https:'].includes(url.protocol) || !bucket)
    throw new AppError('invalid', '--s3: wants s3://bucket/prefix or http://key:secret@host:port/bucket/prefix');
  return {
    PERCH_STORE_URL: `s3://${[bucket, ...prefix].join('/')}`,
    PERCH_S3_ENDPOINT: url.origin,
    ...(url.searchParams.get('region') ? { PERCH_S3_REGION: url.searchParams.get('region')! } : {}),
    ...(url.username ? { PERCH_S3_ACCESS_KEY_ID: decodeURIComponent(url.username) } : {}),
    ...(url.password ? { PERCH_S3_SECRET_ACCESS_KEY: decodeURIComponent(url.password) } : {}),
  };
}

/** Options of `perch up` from its flags and the environment. Throws `invalid` naming the flag. */
export function readUpOptions(flags: Record<string, unknown>, settings: CliSettings): UpOptions {
  const data = (flags['data'] as string | undefined) ?? settings.dataDir;
  const postgresUrl = (flags['postgres'] as string | undefined) ?? settings.environment['PERCH_DATABASE_URL'];
  const storeUrl = settings.environment['PERCH_STORE_URL'];
  if (postgresUrl !== undefined && !/^postgres(ql)?:\/\//.test(postgresUrl))
    throw new AppError('invalid', '--postgres: wants postgres://user:password@host:5432/database');
  const { PERCH_API_KEY: _key, PERCH_URL: _url, ...environment } = settings.environment;
  return {
    dataDir: isAbsolute(data) ? data : resolve(data),
    controlPort: port(flags['port'], '--port'),
    routerPort: port(flags['routerPort'], '--router-port'),
    postgresUrl,
    store: storeSettings(flags['s3'] as string | undefined) ?? (storeUrl ? {} : undefined),
    servers: serverCount(flags['servers']),
    triton: flags['triton'] === true,
    toolsDir: settings.toolsDir,
    configDir: settings.configDir,
    contextName: (flags['contextName'] as string | undefined) ?? 'local',
    environment,
  };
}

/** `name` for the first one, `name-2` for the second: a stack of one server is named as it always was. */
export const numbered = (name: string, place: number): string => (place === 0 ? name : `${name}-${place + 1}`);

/** Where everything lies below the data folder. */
export const placesOf = (dataDir: string) => ({
  lock: join(dataDir, 'perch.lock'),
  state: join(dataDir, 'state.json'),
  logs: join(dataDir, 'logs'),
  postgres: join(dataDir, 'postgres'),
  artifacts: join(dataDir, 'artifacts'),
  /** Of the first server, the second, …: what its model server reads, and its agent's folder. */
  repository: (place: number) => join(dataDir, numbered('engine', place), 'models'),
  agent: (place: number) => join(dataDir, numbered('agent', place)),
  router: join(dataDir, 'router'),
});
export type Places = ReturnType<typeof placesOf>;
