export { BlobCache, type BlobCacheSettings } from './blobs/blob.cache.ts';
export { BlobClient, type BlobClientSettings } from './blobs/blob.client.ts';
export { type Blob, type BlobSource, UrlBook } from './blobs/blob.source.ts';
export { CrashBook } from './crash-book.ts';
export {
  acceptDocument,
  type Documents,
  desiredOf,
  heldRemovals,
  isDrained,
  newestDocument,
  noDocuments,
  readAnswer,
} from './document.plan.ts';
export { DocumentStore } from './document.store.ts';
export { FactsSource } from './facts.source.ts';
export { FolderLock } from './folder-lock.ts';
export { type GpuMemory, readGpuKinds, readGpus } from './gpu.source.ts';
export type { Crash } from './model-ledger.ts';
export { replaceFile } from './replace-file.ts';
export { chooseStaging, RepositoryStore } from './repository.store.ts';
export { type PlannedCommand, planCommand } from './supervise/arguments.plan.ts';
export { decideCure } from './supervise/cure.decide.ts';
export { memoryLimitBytes } from './supervise/memory-limit.source.ts';
export { findServer } from './supervise/process.source.ts';
export { Supervisor } from './supervise/supervisor.ts';
export type { SyncTriton } from './sync.observe.ts';
export { SyncReconciler } from './sync.reconcile.ts';
export { createSyncMetrics, type SyncMetrics } from './sync-metrics.ts';
export type { Desired, SyncSettings, SyncSnapshot } from './sync-parts.ts';
export { syncSettings } from './sync-parts.ts';
export { TritonSource } from './triton.source.ts';
export { UsageSource } from './usage.source.ts';
export { WarmUpClient } from './warm-up.client.ts';
