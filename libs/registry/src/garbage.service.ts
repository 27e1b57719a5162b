import { Inject, Injectable } from '@nestjs/common';
import { type Garbage, shownMessage } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore, type ListedObject } from './artifacts/artifact.store.ts';
import { BlobRemovalService, isBlobKey } from './blob-removal.service.ts';
import { type DeletedVersion, GarbageStore } from './garbage.store.ts';
import { SweepService } from './sweep.service.ts';

export interface CollectOptions {
  dryRun: boolean;
  /** What became garbage later is left. At least an hour ago: uploads may be under way. */
  before: Date;
  /** Which of these hashes are files of something that servers hold or are to hold. */
  neededHashes: (tx: Tx, hashes: readonly string[]) => Promise<Set<string>>;
  /** False: objects without a row stay, since the rows may be older than the objects (a restored database). */
  trustRows: boolean;
}

const mostExamples = 20;
const keysAtOnce = 500;
const mostUploads = 10_000;

/** One kind of garbage, as it is found. */
class Heap {
  private count = 0;
  private sizeBytes = 0;
  private readonly examples: string[] = [];
  private fault: string | null = null;
  constructor(
    private readonly kind: string,
    private readonly what: string,
  ) {}
  add(name: string, sizeBytes: number): void {
    this.count += 1;
    this.sizeBytes += sizeBytes;
    if (this.examples.length < mostExamples) this.examples.push(name);
  }
  failed(error: unknown): void {
    this.fault ??= shownMessage(error);
  }
  get told(): Garbage {
    const { kind, what, count, sizeBytes, examples, fault: failed } = this;
    return { kind, what, count, sizeBytes, examples, failed };
  }
}

/**
 * Bytes that nobody needs. References go first, then blobs without any (marked under a row lock, deleted after the
 * commit, missing from then on), so that an upload of the same bytes at the same time either keeps a blob or makes its own.
 */
@Injectable()
export class GarbageService {
  constructor(
    private readonly transactions: Transactions,
    private readonly rows: GarbageStore,
    private readonly removal: BlobRemovalService,
    private readonly sweep: SweepService,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
  ) {}

  async collect(options: CollectOptions): Promise<Garbage[]> {
    const freed: DeletedVersion[] = [];
    const versions = await this.deletedVersions(options, freed);
    const uploads = await this.abandonedUploads(options);
    const blobs = await this.looseBlobs(options, freed);
    return [versions, ...uploads, blobs, await this.strayObjects(options)];
  }

  private async deletedVersions(options: CollectOptions, freed: DeletedVersion[]): Promise<Garbage> {
    const heap = new Heap('versions', 'deleted versions that no server needs; their bytes go with the blobs below');
    for (const version of await this.rows.deletedVersions(this.transactions.manager, options.before))
      await this.transactions
        .run(async (tx) => {
          if ((await options.neededHashes(tx, version.hashes)).size > 0) return;
          if (!options.dryRun) await this.rows.dropFiles(tx, version.id);
          freed.push(version);
          heap.add(version.name, 0);
        })
        .catch((error) => heap.failed(error));
    return heap.told;
  }

  private async abandonedUploads({ before, dryRun }: CollectOptions): Promise<Garbage[]> {
    const versions = new Heap('uploads', 'uploads that were given up');
    const parts = new Heap('multipart uploads', 'multipart uploads of the store that no blob knows');
    try {
      for (const name of await this.sweep.giveUpVersions(before, mostUploads, dryRun)) versions.add(name, 0);
      for (const key of await this.removal.abortUnknownUploads(before, mostUploads, dryRun)) parts.add(key, 0);
    } catch (error) {
      parts.failed(error);
    }
    return [versions.told, parts.told];
  }

  private async looseBlobs({ before, dryRun }: CollectOptions, freed: readonly DeletedVersion[]): Promise<Garbage> {
    const heap = new Heap('blobs', 'bytes that no version refers to');
    const ids = freed.map(({ id }) => id);
    for (const blob of await this.rows.looseBlobs(this.transactions.manager, before, ids))
      try {
        if (dryRun || (await this.removal.remove(blob.id))) heap.add(blob.sha256, blob.sizeBytes);
      } catch (error) {
        heap.failed(error);
      }
    return heap.told;
  }

  private async strayObjects({ before, dryRun, trustRows }: CollectOptions): Promise<Garbage> {
    const heap = new Heap('objects', 'objects of the store without a row');
    const take = async (batch: readonly ListedObject[]) => {
      const keys = batch.map(({ key }) => key);
      const known = await this.rows.knownKeys(this.transactions.manager, keys);
      for (const { key, sizeBytes } of batch.filter((object) => !known.has(object.key))) {
        if (!dryRun) await this.store.delete(key);
        heap.add(key, sizeBytes);
      }
    };
    try {
      if (trustRows) await this.walk('blobs', before, isBlobKey, take);
      await this.walk('probes', before, () => true, take);
    } catch (error) {
      heap.failed(error);
    }
    return heap.told;
  }

  /** A key is never used twice and its row comes before its URL is signed: an old object without a row gets none any more. */
  private async walk(
    prefix: string,
    before: Date,
    isOurs: (key: string) => boolean,
    take: (batch: readonly ListedObject[]) => Promise<void>,
  ): Promise<void> {
    let batch: ListedObject[] = [];
    for await (const object of this.store.list(prefix)) {
      if (object.modifiedAt >= before || !isOurs(object.key)) continue;
      batch.push(object);
      if (batch.length < keysAtOnce) continue;
      await take(batch);
      batch = [];
    }
    if (batch.length > 0) await take(batch);
  }
}
