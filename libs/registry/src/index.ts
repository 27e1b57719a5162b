export {
  ARTIFACT_STORE,
  type ArtifactStore,
  type ByteRange,
  type KnownBytes,
  type ListedObject,
  type MultipartStore,
  type MultipartUpload,
  type SignedPut,
  type StoredObject,
  type StoredPart,
} from './artifacts/artifact.store.ts';
export { type FolderOptions, FolderStore } from './artifacts/folder.store.ts';
export type { StoreOptions } from './artifacts/open.store.ts';
export { type S3Options, S3Store } from './artifacts/s3.store.ts';
export { type Grant, storePath } from './artifacts/signed-url.ts';
export type { BlobUrl } from './blob.service.ts';
export { DeletionService, type UsersOf } from './deletion.service.ts';
export { type CollectOptions, GarbageService } from './garbage.service.ts';
export type { ImportOptions } from './import.service.ts';
export { ModuleService, type ModuleUsersOf } from './module.service.ts';
export { RegistryModule, type RegistryOptions } from './registry.module.ts';
export { RegistryService } from './registry.service.ts';
export { type StoreProbe, StoreProbeService } from './store-probe.service.ts';
export { SweepService, type Swept } from './sweep.service.ts';
export type { UploadChecks, UploadFault, UploadSight } from './upload-checks.ts';
export { modelWork } from './version-change.service.ts';
