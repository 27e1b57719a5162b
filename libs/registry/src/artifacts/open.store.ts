import { fileURLToPath } from 'node:url';
import { AppError } from '@perch/contracts';
import type { Metrics } from '@perch/platform';
import type { ArtifactStore } from './artifact.store.ts';
import { FolderStore } from './folder.store.ts';
import { type S3Options, S3Store } from './s3.store.ts';

export interface StoreOptions {
  /** `file:///absolute/folder` or `s3://bucket/prefix`. */
  url: string;
  /** Folder: where clients reach the control plane; asked when a URL is signed, so it may be known late. */
  publicUrl: () => string;
  /** Folder: key of the signed URLs; when left out, one is made once and kept in the database. */
  signingKey?: string;
  s3?: Omit<S3Options, 'bucket' | 'prefix'>;
}

/** Opens the store that the URL names; `signingKey` is asked for a folder only. */
export async function openStore(
  options: StoreOptions,
  signingKey: () => Promise<string>,
  metrics?: Metrics,
): Promise<ArtifactStore> {
  const { signingKey: given } = options;
  const url = URL.canParse(options.url) ? new URL(options.url) : undefined;
  if (url?.protocol === 'file:')
    return FolderStore.open({
      root: fileURLToPath(url),
      publicUrl: options.publicUrl,
      signingKey: given === undefined ? signingKey : async () => given,
    });
  if (url?.protocol === 's3:' && url.hostname)
    return new S3Store(
      { ...options.s3, bucket: url.hostname, prefix: url.pathname.replace(/^\/+|\/+$/g, '') },
      metrics,
    );
  throw new AppError('invalid', `store URL: wants file:///absolute/folder or s3://bucket/prefix`);
}

/** What reads `s3://` URLs of imports: the store itself, or a client with the S3 settings beside a folder. */
export function s3SourceOf(store: ArtifactStore, options: StoreOptions): S3Store | undefined {
  if (store instanceof S3Store) return store;
  const { endpoint, accessKeyId } = options.s3 ?? {};
  return endpoint || accessKeyId ? new S3Store({ ...options.s3, bucket: '', prefix: '' }) : undefined;
}
