import { readFileSync } from 'node:fs';
import { AppError } from '@perch/contracts';
import { z } from 'zod';

export type Environment = Record<string, string | undefined>;

/**
 * Reads one program's settings: every variable of `schema` from the environment, an empty text counts as absent, and
 * `NAME_FILE` may name a file that holds the value (for secrets). Throws one `invalid` that lists every bad variable.
 */
export function readConfig<T extends z.ZodObject>(schema: T, env: Environment = process.env): z.output<T> {
  const values: Environment = {};
  const faults: string[] = [];
  for (const name of Object.keys(schema.shape)) {
    const file = env[`${name}_FILE`];
    try {
      values[name] = env[name] || (file ? readFileSync(file, 'utf8').trim() : undefined);
    } catch {
      faults.push(`${name}_FILE: cannot read ${file}`);
    }
  }
  const result = schema.safeParse(values);
  if (!result.success)
    for (const issue of result.error.issues) faults.push(`${issue.path.join('.')}: ${issue.message}`);
  if (faults.length > 0 || !result.success) throw new AppError('invalid', `settings: ${faults.join('; ')}`);
  return result.data;
}

/** `host:port`; port 0 asks for a free one. */
export const listenAddress = z
  .string()
  .regex(/^.+:\d{1,5}$/, 'wants host:port')
  .transform((text) => {
    const at = text.lastIndexOf(':');
    return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(text.slice(at + 1)) };
  });
export type ListenAddress = z.output<typeof listenAddress>;

export const booleanSetting = z.enum(['true', 'false', '1', '0']).transform((text) => text === 'true' || text === '1');

/** Settings that every program has. */
export const commonSettings = {
  PERCH_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
};
export const tlsSettings = { PERCH_TLS_CERT: z.string().optional(), PERCH_TLS_KEY: z.string().optional() };
