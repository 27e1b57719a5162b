import type { Readable } from 'node:stream';

/** Bytes that are known before they are sent. `sha256` in hex. */
export interface KnownBytes {
  sha256: string;
  sizeBytes: number;
}
export interface StoredObject {
  sizeBytes: number;
  /** Hex, as the store itself computed it over the whole object; undefined: it did not (multipart). */
  sha256: string | undefined;
}
/** Both ends count: 0–0 is one byte. */
export interface ByteRange {
  first: number;
  last: number;
}
export interface SignedPut {
  url: string;
  /** To be sent as they stand; the signature covers them. */
  headers: Record<string, string>;
}
export interface StoredPart {
  partNumber: number;
  sizeBytes: number;
  etag: string;
}
/** `modifiedAt`: by the store's own clock. */
export interface ListedObject {
  key: string;
  sizeBytes: number;
  modifiedAt: Date;
}
export interface MultipartUpload {
  key: string;
  uploadId: string;
  startedAt: Date;
}

/**
 * Where artifacts lie: S3, or a folder. Keys are made by `@perch/contracts` (`blobKey`, `versionClaimKey`). A missing
 * object is `not_found` for `read` and undefined for `head`; a store that cannot be reached is `unavailable`.
 */
export interface ArtifactStore {
  /** A client's single PUT: the store itself refuses other bytes than these (400) and the URL past `expiresAt` (403). */
  signPut(key: string, bytes: KnownBytes, expiresAt: Date): Promise<SignedPut>;
  /** A client's GET, ranges included. */
  signGet(key: string, expiresAt: Date): Promise<string>;
  /** Our own write of a body of known bytes; `integrity` when they differ. */
  put(key: string, body: Readable, bytes: KnownBytes): Promise<void>;
  /** Writes only when nothing lies at `key`; false: somebody was first. */
  putIfAbsent(key: string, body: Uint8Array): Promise<boolean>;
  head(key: string): Promise<StoredObject | undefined>;
  read(key: string, range?: ByteRange): Promise<Readable>;
  /** Deleting what is not there is fine. */
  delete(key: string): Promise<void>;
  /** All objects whose keys begin with `prefix` and a slash, in any order; for the collection of garbage. */
  list(prefix: string): AsyncIterable<ListedObject>;
  readonly multipart: MultipartStore;
}

/** Uploads in parts. The parts of one upload but the last have the same size, at least 5 MiB. */
export interface MultipartStore {
  start(key: string): Promise<string>;
  /** A client's PUT of one part of exactly this size. */
  signPart(upload: UploadRef, partNumber: number, sizeBytes: number, expiresAt: Date): Promise<string>;
  /** Parts that have arrived, in order; undefined: there is no such upload (any more). */
  parts(upload: UploadRef): Promise<StoredPart[] | undefined>;
  complete(upload: UploadRef, parts: readonly StoredPart[]): Promise<void>;
  /** Aborting what is not there is fine. */
  abort(upload: UploadRef): Promise<void>;
  /** All uploads under way, oldest or not, for the sweep. */
  list(): AsyncIterable<MultipartUpload>;
}
export type UploadRef = Pick<MultipartUpload, 'key' | 'uploadId'>;

export const ARTIFACT_STORE = Symbol('artifact store');
