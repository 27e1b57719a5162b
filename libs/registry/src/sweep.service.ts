import { Inject, Injectable } from '@nestjs/common';
import { systemActor } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';
import { BlobStore } from './blob.store.ts';
import { VersionStore } from './version.store.ts';
import { VersionChangeService } from './version-change.service.ts';

/** After the end of an upload's time: for a PUT that began just before it, and for clocks that differ. */
const graceMs = 3_600_000;
const atOnce = 200;

export interface Swept {
  /** Versions whose upload was given up. */
  versions: number;
  /** Objects that nothing refers to any more. */
  blobs: number;
  /** Multipart uploads that no blob knows. */
  uploads: number;
}

/** Takes away what uploads leave behind; S3 servers refuse the lifecycle rule that would do it. Safe to run anywhere, any time. */
@Injectable()
export class SweepService {
  constructor(
    private readonly transactions: Transactions,
    private readonly versions: VersionStore,
    private readonly blobs: BlobStore,
    private readonly changes: VersionChangeService,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
  ) {}

  /** One pass; at most 200 of each kind, the rest next time. */
  async sweepUploads(now: Date): Promise<Swept> {
    const before = new Date(now.getTime() - graceMs);
    return {
      versions: await this.giveUpVersions(before),
      blobs: await this.deleteLooseBlobs(before),
      uploads: await this.abortUnknownUploads(before),
    };
  }

  private async giveUpVersions(before: Date): Promise<number> {
    const found = await this.versions.abandoned(this.transactions.manager, before, atOnce);
    for (const { id, number, model } of found)
      await this.transactions.run(async (tx) => {
        const version = await this.versions.lock(tx, model.project, model.name, number);
        if (version.state !== 'uploading' || version.uploadExpiresAt >= before) return; // resumed or completed meanwhile
        await this.versions.delete(tx, id);
        await this.changes.record(tx, systemActor, 'version.abandon', version);
      });
    return found.length;
  }

  /** Marked under the row's lock, deleted after the commit: a crash in between leaves the mark, and the next pass goes on. */
  private async deleteLooseBlobs(before: Date): Promise<number> {
    const found = await this.blobs.loose(this.transactions.manager, before, atOnce);
    let deleted = 0;
    for (const id of found) {
      const blob = await this.transactions.run((tx) => this.blobs.markDeleting(tx, id));
      if (!blob) continue;
      if (blob.multipartId) await this.store.multipart.abort({ key: blob.objectKey, uploadId: blob.multipartId });
      await this.store.delete(blob.objectKey);
      await this.blobs.delete(this.transactions.manager, id);
      deleted += 1;
    }
    return deleted;
  }

  /** Begun by a process that died before it wrote the id down. */
  private async abortUnknownUploads(before: Date): Promise<number> {
    let aborted = 0;
    for await (const upload of this.store.multipart.list()) {
      if (aborted >= atOnce || upload.startedAt >= before || !isBlobKey(upload.key)) continue;
      if (await this.blobs.knowsMultipart(this.transactions.manager, upload.uploadId)) continue;
      await this.store.multipart.abort(upload);
      aborted += 1;
    }
    return aborted;
  }
}

/** Somebody else's uploads in the same bucket are none of ours. */
const isBlobKey = (key: string): boolean => /^blobs\/[0-9a-f]{64}\/[0-9a-f-]{36}$/.test(key);
