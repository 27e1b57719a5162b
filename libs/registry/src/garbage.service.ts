import { Inject, Injectable } from '@nestjs/common';
import { type Garbage, shownMessage } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore, type ListedObject } from './artifacts/artifact.store.ts';
import { BlobRemovalService, isBlobKey } from './blob-removal.service.ts';
import { type Deleted, GarbageStore } from './garbage.store.ts';
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
    const freed: Deleted[] = [];
    const versions = await this.deletedVersions(options, freed);
    const modules = await this.deletedModules(options, freed);
    const uploads = await this.abandonedUploads(options);
    const blobs = await this.looseBlobs(options, freed);
    return [versions, modules, ...uploads, blobs, await this.strayObjects(options)];
  }

  private async deletedVersions(options: CollectOptions, freed: Deleted[]): Promise<Garbage> {
    const heap = new Heap('versions', 'deleted versions that no server needs; their bytes go with the blobs below');
    const found = await this.rows.deletedVersions(this.transactions.manager, options.before);
    await this.free(found, options, heap, freed, (tx, id) => this.rows.dropFiles(tx, id));
    return heap.told;
  }

  private async deletedModules(options: CollectOptions, freed: Deleted[]): Promise<Garbage> {
    const heap = new Heap(
      'modules',
      'deleted processing modules that no router needs; their bytes go with the blobs below',
    );
    const found = await this.rows.deletedModules(this.transactions.manager, options.before);
    await this.free(found, options, heap, freed, (tx, id) => this.rows.dropModuleFiles(tx, id));
    return heap.told;
  }

  /** Drops the references of those whose bytes nothing that serves needs. */
  private async free(
    found: readonly Deleted[],
    options: CollectOptions,
    heap: Heap,
    freed: Deleted[],
    drop: (tx: Tx, id: string) => Promise<void>,
  ): Promise<void> {
    for (const one of found)
      await this.transactions
        .run(async (tx) => {
          if ((await options.neededHashes(tx, one.hashes)).size > 0) return;
          if (!options.dryRun) await drop(tx, one.id);
          freed.push(one);
          heap.add(one.name, 0);
        })
        .catch((error) => heap.failed(error));
  }

  private async abandonedUploads({ before, dryRun }: CollectOptions): Promise<Garbage[]> {
    const versions = new Heap('uploads', 'uploads that were given up');
    const parts = new Heap('multipart uploads', 'multipart uploads of the store that no blob knows');
    try {
      for (const name of await this.sweep.giveUpVersions(before, mostUploads, dryRun)) versions.add(name, 0);
      for (const name of await this.sweep.giveUpModules(before, mostUploads, dryRun)) versions.add(`module ${name}`, 0);
      for (const key of await this.removal.abortUnknownUploads(before, mostUploads, dryRun)) parts.add(key, 0);
    } catch (error) {
      parts.failed(error);
    }
    return [versions.told, parts.told];
  }

  private async looseBlobs({ before, dryRun }: CollectOptions, freed: readonly Deleted[]): Promise<Garbage> {
    const heap = new Heap('blobs', 'bytes that no version or module refers to');
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
