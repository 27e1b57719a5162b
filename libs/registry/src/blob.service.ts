import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import type { Actor, BlobUpload, ManifestFile } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';
import type { BlobEntity } from './blob.entity.ts';
import { BlobStore } from './blob.store.ts';
import { inParallel } from './parallel.ts';
import { donePartNumbers, type PartPlan, partBytes, planParts } from './upload.plan.ts';

const storeCallsAtOnce = 16;

export interface BlobUrl {
  sha256: string;
  sizeBytes: number;
  url: string;
}

/** How clients get bytes into the store and out of it; the bytes themselves never pass through here. */
@Injectable()
export class BlobService {
  constructor(
    private readonly transactions: Transactions,
    private readonly blobs: BlobStore,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
  ) {}

  /**
   * A blob for every hash of a manifest, by hash: a verified one that the asker may see, else a fresh row to be uploaded.
   * References are inserted in the same transaction, so nothing found here can go before.
   */
  async place(tx: Tx, files: readonly ManifestFile[], actor: Actor): Promise<Map<string, string>> {
    const wanted = new Map(files.map((file) => [file.sha256, file]));
    const projects = actor.projects.length > 0 ? actor.projects : undefined;
    const shared = await this.blobs.shareVerified(tx, [...wanted.keys()], projects);
    const placed = new Map([...shared].map(([sha256, blob]) => [sha256, blob.id]));
    const fresh = [...wanted.values()].filter((file) => shared.get(file.sha256)?.sizeBytes !== file.size);
    for (const [sha256, id] of await this.blobs.insertUnverified(tx, fresh)) placed.set(sha256, id);
    return placed;
  }

  /** What is still to be sent for a version or module. `fresh`: nothing of it can have arrived, so the store is not asked. */
  async missing(holderId: string, expiresAt: Date, fresh: boolean): Promise<BlobUpload[]> {
    const all = await this.blobs.ofHolder(this.transactions.manager, holderId);
    const open = all.filter((blob) => blob.state !== 'verified');
    const uploads = await inParallel(open, storeCallsAtOnce, (blob) => {
      const plan = planParts(blob.sizeBytes);
      return plan ? this.partsOf(blob, plan, expiresAt) : this.putOf(blob, expiresAt, fresh);
    });
    return uploads.filter((upload) => upload !== undefined);
  }

  /** Our own upload of a file of a version: what a client does with a signed URL. Verified and arrived ones are left alone. */
  async fill(holderId: string, sha256: string, open: () => Readable): Promise<void> {
    const blobs = await this.blobs.ofHolder(this.transactions.manager, holderId);
    for (const blob of blobs.filter((candidate) => candidate.sha256 === sha256 && candidate.state !== 'verified'))
      if (!(await this.store.head(blob.objectKey))) await this.store.put(blob.objectKey, open(), blob);
  }

  /** Signed GETs of verified blobs for agents and routers; hashes that are not known are left out. */
  async urls(hashes: readonly string[], expiresAt: Date): Promise<BlobUrl[]> {
    const blobs = await this.blobs.verified(this.transactions.manager, hashes);
    return this.signAll(blobs, expiresAt);
  }

  /** Signed GETs of exactly these blobs. */
  async urlsOf(holderId: string, expiresAt: Date): Promise<BlobUrl[]> {
    return this.signAll(await this.blobs.ofHolder(this.transactions.manager, holderId), expiresAt);
  }

  private async signAll(blobs: readonly BlobEntity[], expiresAt: Date): Promise<BlobUrl[]> {
    return inParallel(blobs, storeCallsAtOnce, async ({ sha256, sizeBytes, objectKey }) => ({
      sha256,
      sizeBytes,
      url: await this.store.signGet(objectKey, expiresAt),
    }));
  }

  private async putOf(blob: BlobEntity, expiresAt: Date, fresh: boolean): Promise<BlobUpload | undefined> {
    if (!fresh && (await this.store.head(blob.objectKey))?.sha256 === blob.sha256) return undefined;
    const { url, headers } = await this.store.signPut(blob.objectKey, blob, expiresAt);
    return { ...about(blob, expiresAt), method: 'put', url, headers };
  }

  private async partsOf(blob: BlobEntity, plan: PartPlan, expiresAt: Date): Promise<BlobUpload | undefined> {
    const open = await this.openMultipart(blob);
    if (!open) return undefined;
    const done = donePartNumbers(blob.sizeBytes, plan, open.stored);
    if (done.length === plan.partCount) return undefined;
    const numbers = Array.from({ length: plan.partCount }, (_, at) => at + 1).filter((n) => !done.includes(n));
    const upload = { key: blob.objectKey, uploadId: open.uploadId };
    const parts = await inParallel(numbers, storeCallsAtOnce, async (partNumber) => ({
      partNumber,
      url: await this.store.multipart.signPart(
        upload,
        partNumber,
        partBytes(blob.sizeBytes, plan, partNumber),
        expiresAt,
      ),
    }));
    return { ...about(blob, expiresAt), method: 'multipart', ...plan, parts, partsDone: done };
  }

  /** The store's upload of this blob and what it holds, begun when there is none; undefined: the object is whole already. */
  private async openMultipart(blob: BlobEntity) {
    for (let current = blob; ; current = await this.blobs.get(this.transactions.manager, blob.id)) {
      const uploadId = current.multipartId;
      const stored = uploadId && (await this.store.multipart.parts({ key: blob.objectKey, uploadId }));
      if (uploadId && stored) return { uploadId, stored };
      if (uploadId && (await this.store.head(blob.objectKey))) return undefined;
      const started = await this.store.multipart.start(blob.objectKey);
      if (!(await this.blobs.keepMultipart(this.transactions.manager, blob.id, uploadId, started)))
        await this.store.multipart.abort({ key: blob.objectKey, uploadId: started });
    }
  }
}

const about = (blob: BlobEntity, expiresAt: Date) => ({
  sha256: blob.sha256,
  size: blob.sizeBytes,
  uploadId: blob.id,
  expiresAt: expiresAt.toISOString(),
});
