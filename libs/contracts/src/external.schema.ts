import { z } from 'zod';
import { poolName } from './names.schema.ts';

/** `adopt`: what it holds is served and not managed. `explicit`: small models are loaded into it as well. */
export const externalMode = z.enum(['adopt', 'explicit']);
export type ExternalMode = z.infer<typeof externalMode>;

/** So that `<server or pool>/<Triton model>` has one meaning. */
const serverName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    'a server name is 1 to 63 of A-Z a-z 0-9 . _ - and starts with a letter or digit',
  );
const hostPort = z
  .string()
  .transform((text) => text.replace(/^grpc:\/\//, '').replace(/\/+$/, ''))
  .pipe(z.string().regex(/^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):\d{1,5}$/, 'wants host:port'));

/** `fleet register`: a Triton without an agent. `url` is `http://host:port`, `grpc` `host:port`. */
export const registerServer = z
  .strictObject({
    name: serverName,
    url: z
      .string()
      .transform((text) => text.replace(/\/+$/, ''))
      .pipe(
        z
          .string()
          .regex(/^http:\/\/[^/?#@]+:\d{1,5}$/, 'wants http://host:port (the HTTP port of a Triton has no TLS)'),
      ),
    grpc: hostPort,
    pool: poolName.default('default'),
    mode: externalMode.default('adopt'),
    labels: z.record(z.string(), z.string()).default({}),
    /** What a server started with restricted protocols wants to see, as `key: value` was given there. */
    headers: z
      .record(
        z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'a header is a lower-case name'),
        z.string().regex(/^[\x21-\x7e]{1,1024}$/, 'a header value is 1 to 1024 printable characters without blanks'),
      )
      .default({}),
  })
  .meta({ id: 'RegisterServer' });
export type RegisterServer = z.infer<typeof registerServer>;

/** Of a server without an agent: what it is used for, and why it does not answer (null: it does). */
export const externalView = z.object({ mode: externalMode, problem: z.string().nullable() });
export type ExternalView = z.infer<typeof externalView>;

/** `<server or pool>/<Triton model>` */
export const modelSource = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/[^/\s]{1,200}$/,
    'a source is <server or pool>/<Triton model>, such as gpu-box/resnet50',
  );

/** Project and model name of an endpoint that is served by what an external Triton holds, where it gives none. */
export function sourceModelName(source: string): { project: string; name: string } {
  const slug = source
    .slice(source.indexOf('/') + 1)
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64);
  return { project: 'external', name: slug || 'model' };
}
