import { z } from 'zod';

const segment = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export const projectName = z
  .string()
  .regex(segment, 'a project name is 1 to 64 of A-Z a-z 0-9 . _ - and starts with a letter or digit')
  .meta({ id: 'ProjectName' });
export const modelName = z
  .string()
  .regex(segment, 'a model name is 1 to 64 of A-Z a-z 0-9 . _ - and starts with a letter or digit')
  .meta({ id: 'ModelName' });
export const versionNumber = z.coerce.number().int().min(1).max(2_147_483_647);
export const endpointName = z
  .string()
  .max(200)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(\/[A-Za-z0-9][A-Za-z0-9._-]{0,63}){0,7}$/,
    'an endpoint name is 1 to 8 segments joined by "/", each 1 to 64 of A-Z a-z 0-9 . _ - starting with a letter or digit',
  )
  .meta({ id: 'EndpointName' });
export const tag = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/,
    'a tag is 1 to 128 of A-Z a-z 0-9 . _ : / - and starts with a letter or digit',
  );
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'a SHA-256 is 64 lower-case hex digits');
export const poolName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a pool name is 1 to 63 of a-z 0-9 -');

/** What a server says of itself, and what an endpoint may ask of servers: `{ zone: a, gpu: h100 }`. */
export const serverLabels = z
  .record(z.string().min(1).max(128), z.string().min(1).max(256))
  .refine((labels) => Object.keys(labels).length <= 32, 'at most 32 labels');

/** Triton model name of one immutable (manifest, engine settings): the only place that builds one. */
export function tritonModelName(model: string, version: number, identityDigest: string): string {
  const slug = model
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 64)
    .replace(/-+$/, '');
  return `${slug || 'model'}-v${version}-${identityDigest.slice(0, 12)}`;
}

/** S3 keys (relative to the store's prefix): the only place that builds one. */
export const blobKey = (hash: string, uploadId: string): string => `blobs/${hash}/${uploadId}`;
/** Written, read and deleted again by `perch doctor`. */
export const probeKey = (id: string): string => `probes/${id}`;
export const versionClaimKey = (project: string, name: string, number: number): string =>
  `versions/${project}/${name}/${number}`;
export const moduleClaimKey = (name: string, number: number): string => `modules/${name}/${number}`;
