import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '@perch/contracts';

/** What the holder of one signed URL of the folder store may do, and nothing else. */
export interface Grant {
  method: 'GET' | 'PUT';
  key: string;
  expiresAtMs: number;
  /** PUT: the exact length of the body. */
  sizeBytes?: number;
  /** PUT of a whole object: hex. */
  sha256?: string;
  /** PUT of one part. */
  uploadId?: string;
  partNumber?: number;
}

export const storePath = '/store/v1/';

const signatureOf = (signingKey: string, grant: Grant): string =>
  createHmac('sha256', signingKey)
    .update(
      JSON.stringify([
        grant.method,
        grant.key,
        grant.expiresAtMs,
        grant.sizeBytes ?? null,
        grant.sha256 ?? null,
        grant.uploadId ?? null,
        grant.partNumber ?? null,
      ]),
    )
    .digest('hex');

/** Path and query of a grant, to be put behind the control plane's public address. */
export function signGrant(signingKey: string, grant: Grant): string {
  const query = new URLSearchParams({ method: grant.method, expires: String(grant.expiresAtMs) });
  if (grant.sizeBytes !== undefined) query.set('size', String(grant.sizeBytes));
  if (grant.sha256 !== undefined) query.set('sha256', grant.sha256);
  if (grant.uploadId !== undefined) query.set('upload', grant.uploadId);
  if (grant.partNumber !== undefined) query.set('part', String(grant.partNumber));
  query.set('signature', signatureOf(signingKey, grant));
  return `${storePath}${grant.key}?${query}`;
}

const numberOr = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));

/** Reads the grant back out of a request; throws `forbidden` when it was tampered with, is another method's, or is over. */
export function readGrant(
  signingKey: string,
  method: string,
  key: string,
  query: Record<string, string | undefined>,
  nowMs: number,
): Grant {
  const grant = {
    method: query['method'],
    key,
    expiresAtMs: Number(query['expires']),
    sizeBytes: numberOr(query['size']),
    sha256: query['sha256'],
    uploadId: query['upload'],
    partNumber: numberOr(query['part']),
  } as Grant;
  const wanted = Buffer.from(signatureOf(signingKey, grant));
  const given = Buffer.from(String(query['signature'] ?? ''));
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted) || grant.method !== method)
    throw new AppError('forbidden', 'signed URL: the signature does not fit this request; ask for a fresh URL');
  if (grant.expiresAtMs <= nowMs) throw new AppError('forbidden', 'signed URL: it has expired; ask for a fresh one');
  return grant;
}
