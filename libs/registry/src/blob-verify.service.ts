import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { AppError } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore, type StoredObject } from './artifacts/artifact.store.ts';
import type { BlobEntity } from './blob.entity.ts';
import { BlobStore } from './blob.store.ts';
import { inParallel } from './parallel.ts';
import { donePartNumbers, planParts } from './upload.plan.ts';

const checksAtOnce = 8;

export interface BlobFault {
  blob: BlobEntity;
  kind: 'missing' | 'wrong';
  /** Goes on after "file <path>: ". */
  reason: string;
}

/** Decides whether what lies in the store is what its name says. */
@Injectable()
export class BlobVerifyService {
  constructor(
    private readonly transactions: Transactions,
    private readonly blobs: BlobStore,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
  ) {}

  /**
   * Looks at every blob of a version or module, verified ones only for being there. What proved right is remembered at once, so
   * that a second try after a crash does not hash it again.
   */
  async check(holderId: string): Promise<BlobFault[]> {
    const blobs = await this.blobs.ofHolder(this.transactions.manager, holderId);
    const faults = await inParallel(blobs, checksAtOnce, (blob) => this.checkOne(blob));
    return faults.filter((fault) => fault !== undefined);
  }

  /** Holds its blobs until the transaction ends; false: one is not (or no longer) verified. */
  async holdVerified(tx: Tx, holderId: string): Promise<boolean> {
    return (await this.blobs.lockOfHolder(tx, holderId)).length === 0;
  }

  /** Fresh rows for what is wrong, and for what is gone although it was verified once. */
  async replaceSpoilt(tx: Tx, holderId: string, faults: readonly BlobFault[]): Promise<void> {
    for (const { kind, blob } of faults)
      if (kind === 'wrong' || blob.state === 'verified') await this.blobs.replace(tx, holderId, blob);
  }

  private async checkOne(blob: BlobEntity): Promise<BlobFault | undefined> {
    const found = (await this.store.head(blob.objectKey)) ?? (await this.assemble(blob));
    if (typeof found === 'string') return { blob, kind: 'missing', reason: found };
    const wrong = found.sizeBytes === blob.sizeBytes ? await this.hashFault(blob, found) : sizeFault(blob, found);
    if (wrong) return { blob, kind: 'wrong', reason: wrong };
    if (blob.state === 'unverified') await this.blobs.markVerified(this.transactions.manager, [blob.id]);
    return undefined;
  }

  private async hashFault(blob: BlobEntity, found: StoredObject): Promise<string | undefined> {
    if (blob.state === 'verified') return undefined;
    const sum = found.sha256 ?? (await this.hash(blob.objectKey));
    return sum === blob.sha256 ? undefined : `its bytes have SHA-256 ${sum}, the manifest says ${blob.sha256}`;
  }

  private async hash(key: string): Promise<string> {
    const hash = createHash('sha256');
    for await (const chunk of await this.store.read(key)) hash.update(chunk);
    return hash.digest('hex');
  }

  /** Makes the object out of its parts once all are there; else says what is missing. */
  private async assemble(blob: BlobEntity): Promise<StoredObject | string> {
    const plan = planParts(blob.sizeBytes);
    if (!plan || !blob.multipartId) return 'its bytes were not uploaded yet';
    const upload = { key: blob.objectKey, uploadId: blob.multipartId };
    const stored = (await this.store.multipart.parts(upload)) ?? [];
    const done = donePartNumbers(blob.sizeBytes, plan, stored);
    if (done.length < plan.partCount)
      return `${plan.partCount - done.length} of its ${plan.partCount} parts are missing`;
    const parts = stored.filter((part) => part.partNumber <= plan.partCount);
    await this.store.multipart.complete(upload, parts).catch(async (error) => {
      if (!(await this.store.head(blob.objectKey))) throw error; // else somebody else completed it meanwhile
    });
    const found = await this.store.head(blob.objectKey);
    if (!found) throw new AppError('unavailable', `object ${blob.objectKey} is not to be seen yet; complete again`);
    return found;
  }
}

const sizeFault = (blob: BlobEntity, found: StoredObject): string =>
  `it has ${found.sizeBytes} bytes, the manifest says ${blob.sizeBytes}`;
