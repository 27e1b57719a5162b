export { BlobCache, type BlobCacheSettings } from './blob.cache.ts';
export { BlobClient, type BlobClientSettings } from './blob.client.ts';
export { type Blob, type BlobSource, UrlBook } from './blob.source.ts';
export {
  acceptDocument,
  type Documents,
  desiredOf,
  heldRemovals,
  newestDocument,
  noDocuments,
  readAnswer,
} from './document.plan.ts';
export { DocumentStore } from './document.store.ts';
export { readGpus } from './gpu.source.ts';
export { replaceFile } from './replace-file.ts';
export { chooseStaging, RepositoryStore } from './repository.store.ts';
export type { SyncTriton } from './sync.observe.ts';
export { SyncReconciler } from './sync.reconcile.ts';
export { createSyncMetrics, type SyncMetrics } from './sync-metrics.ts';
export type { Desired, SyncSettings, SyncSnapshot } from './sync-parts.ts';
export { syncSettings } from './sync-parts.ts';
export { TritonSource } from './triton.source.ts';
export { WarmUpClient } from './warm-up.client.ts';
