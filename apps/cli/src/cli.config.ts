import { join } from 'node:path';
import envPaths from 'env-paths';

export interface CliSettings {
  /** PERCH_URL: address of the control plane; goes before any context. */
  url: string | undefined;
  /** PERCH_API_KEY */
  apiKey: string | undefined;
  /** PERCH_ROUTER_URL: where `endpoint infer` calls. */
  routerUrl: string | undefined;
  /** PERCH_CONTEXT */
  context: string | undefined;
  /** PERCH_CONFIG_DIR, default: the system's place for settings. Holds contexts.json. */
  configDir: string;
  /** PERCH_UP_DIR, default: the system's place for data. Where `perch up` keeps everything. */
  dataDir: string;
  /** PERCH_TOOLS_DIR, default: a folder of the system's cache. Where a real Triton is installed. */
  toolsDir: string | undefined;
  /** NO_COLOR (any text). */
  color: boolean;
  /** All of it, for child programs. */
  environment: Record<string, string | undefined>;
}

export function readSettings(env: Record<string, string | undefined> = process.env): CliSettings {
  const paths = envPaths('perch', { suffix: '' });
  return {
    url: env['PERCH_URL'] || undefined,
    apiKey: env['PERCH_API_KEY'] || undefined,
    routerUrl: env['PERCH_ROUTER_URL'] || undefined,
    context: env['PERCH_CONTEXT'] || undefined,
    configDir: env['PERCH_CONFIG_DIR'] || paths.config,
    dataDir: env['PERCH_UP_DIR'] || join(paths.data, 'up'),
    toolsDir: env['PERCH_TOOLS_DIR'] || undefined,
    color: !env['NO_COLOR'],
    environment: env,
  };
}
