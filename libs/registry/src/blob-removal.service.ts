import { Inject, Injectable } from '@nestjs/common';
import { Transactions } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';
import type { BlobEntity } from './blob.entity.ts';
import { BlobStore } from './blob.store.ts';

/** The one way in which bytes of a blob go. */
@Injectable()
export class BlobRemovalService {
  constructor(
    private readonly transactions: Transactions,
    private readonly blobs: BlobStore,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
  ) {}

  /**
   * Marked under the row's lock, deleted after the commit: a crash in between leaves the mark, and the next pass goes on.
   * Undefined: somebody refers to it again, or it is gone.
   */
  async remove(id: string): Promise<BlobEntity | undefined> {
    const blob = await this.transactions.run((tx) => this.blobs.markDeleting(tx, id));
    if (!blob) return undefined;
    if (blob.multipartId) await this.store.multipart.abort({ key: blob.objectKey, uploadId: blob.multipartId });
    await this.store.delete(blob.objectKey);
    await this.blobs.delete(this.transactions.manager, id);
    return blob;
  }

  /** Blobs that nothing refers to and that are older than `before`; how many went, at most `limit`. */
  async removeLoose(before: Date, limit: number): Promise<number> {
    let removed = 0;
    for (const id of await this.blobs.loose(this.transactions.manager, before, limit))
      if (await this.remove(id)) removed += 1;
    return removed;
  }

  /** Multipart uploads begun by a process that died before it wrote the id down; their keys, at most `limit`. */
  async abortUnknownUploads(before: Date, limit: number, dryRun = false): Promise<string[]> {
    const keys: string[] = [];
    for await (const upload of this.store.multipart.list()) {
      if (keys.length >= limit || upload.startedAt >= before || !isBlobKey(upload.key)) continue;
      if (await this.blobs.knowsMultipart(this.transactions.manager, upload.uploadId)) continue;
      if (!dryRun) await this.store.multipart.abort(upload);
      keys.push(upload.key);
    }
    return keys;
  }
}

/** Somebody else's uploads and objects in the same bucket are none of ours. */
export const isBlobKey = (key: string): boolean => /^blobs\/[0-9a-f]{64}\/[0-9a-f-]{36}$/.test(key);
