import { createHash } from 'node:crypto';
import { type FileHandle, open, statfs } from 'node:fs/promises';
import { AppError } from '@perch/contracts';
import { Slots } from '../slots.ts';
import type { BlobClient } from './blob.client.ts';
import type { Blob } from './blob.source.ts';
import { BlobStore } from './blob.store.ts';
import { hashFile } from './file-hash.ts';

export interface BlobCacheSettings {
  folder: string;
  /** Most bytes kept of blobs that nobody needs now. */
  keepBytes: number;
  /** Blobs that nobody needs go while the disk has less free. */
  minFreeBytes: number;
  freeBytes(folder: string): Promise<number>;
  now(): number;
  onPulled?(sizeBytes: number, seconds: number): void;
}

export const diskFreeBytes = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

interface Pull {
  done: Promise<void>;
  waiting: number;
  stop: AbortController;
}

const wholeTries = 3;
/** Bounds open files; the bound on memory and connections is the client's. */
const blobsAtOnce = 16;
const isFull = (error: unknown) => ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');

/** The content-addressed cache: pulls what is asked for, once a hash, and lets go of what nobody needs. */
export class BlobCache {
  readonly store: BlobStore;
  private readonly client: BlobClient;
  private readonly settings: BlobCacheSettings;
  private readonly pulls = new Map<string, Pull>();
  private readonly slots = new Slots(blobsAtOnce);
  private readonly syncing = new Set<Promise<void>>();
  private needed: ReadonlySet<string> = new Set();
  private heldBytes = 0;

  constructor(client: BlobClient, settings: Partial<BlobCacheSettings> & { folder: string }) {
    this.client = client;
    this.settings = {
      keepBytes: 20 * 1024 ** 3,
      minFreeBytes: 1024 ** 3,
      freeBytes: diskFreeBytes,
      now: Date.now,
      ...settings,
    };
    this.store = new BlobStore(settings.folder);
  }

  async open(): Promise<void> {
    await this.store.open();
    await this.measure();
  }

  /** Resolves when all that was pulled is on the disk. */
  async flush(): Promise<void> {
    await Promise.all(this.syncing);
  }

  /** Ends what is open to stores, once all that was pulled is on the disk. */
  async close(): Promise<void> {
    await this.flush();
    this.client.close();
  }

  /** Bytes of all blobs in the cache. */
  get sizeBytes(): number {
    return this.heldBytes;
  }

  freeBytes(): Promise<number> {
    return this.settings.freeBytes(this.settings.folder);
  }

  /** Has all of them in the cache, verified; their addresses are asked for together. Throws the first failure when all have ended. */
  async pullAll(blobs: readonly Blob[], signal: AbortSignal): Promise<void> {
    const missing = await this.store.missing(blobs);
    await this.client.announce([...missing]);
    const pulled = blobs.map(async (blob) => {
      const release = await this.slots.take();
      try {
        await this.pull(blob, signal);
      } finally {
        release();
      }
    });
    for (const result of await Promise.allSettled(pulled)) if (result.status === 'rejected') throw result.reason;
  }

  /**
   * Has the blob in the cache, verified. However many ask for one hash, it is fetched once; when all of them have given
   * up, so does the fetch. Throws `no_space`, `integrity`, `not_found`, `unavailable` or `cancelled`.
   */
  async pull(blob: Blob, signal: AbortSignal): Promise<void> {
    let pull = this.pulls.get(blob.sha256);
    if (pull?.stop.signal.aborted) {
      await pull.done.catch(() => undefined);
      pull = this.pulls.get(blob.sha256);
    }
    const joined = pull ?? this.begin(blob);
    joined.waiting += 1;
    const leave = () => {
      joined.waiting -= 1;
      if (joined.waiting === 0) joined.stop.abort();
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    try {
      await joined.done;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Says which blobs are needed now; these are never evicted. */
  async need(hashes: ReadonlySet<string>): Promise<void> {
    const left = [...this.needed].filter((hash) => !hashes.has(hash));
    this.needed = hashes;
    for (const hash of left) await this.store.noteNeeded(hash, this.settings.now());
  }

  /** Removes blobs that are not needed, least recently needed first, until the rest of them fits and the disk has `roomBytes` of air. */
  async evict(roomBytes = this.settings.minFreeBytes): Promise<void> {
    const idle = (await this.store.list()).filter(({ hash }) => !this.inUse(hash));
    idle.sort((a, b) => a.neededAtMs - b.neededAtMs);
    let idleBytes = idle.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    for (const { hash, sizeBytes } of idle) {
      if (idleBytes <= this.settings.keepBytes && (await this.freeBytes()) >= roomBytes) break;
      await this.store.drop(hash);
      idleBytes -= sizeBytes;
    }
    for (const hash of await this.store.listPartial()) if (!this.inUse(hash)) await this.store.dropPartial(hash);
    await this.measure();
  }

  private inUse(hash: string): boolean {
    return this.needed.has(hash) || this.pulls.has(hash);
  }

  private async measure(): Promise<void> {
    this.heldBytes = (await this.store.list()).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  private begin(blob: Blob): Pull {
    const stop = new AbortController();
    const done = this.fetch(blob, stop.signal).finally(() => this.pulls.delete(blob.sha256));
    const pull = { done, waiting: 0, stop };
    this.pulls.set(blob.sha256, pull);
    return pull;
  }

  private async fetch(blob: Blob, signal: AbortSignal): Promise<void> {
    if (await this.store.verify(blob)) return;
    const started = performance.now();
    for (let tried = 1; ; tried += 1) {
      try {
        await this.fetchOnce(blob, signal);
        this.heldBytes += blob.size;
        this.settings.onPulled?.(blob.size, (performance.now() - started) / 1_000);
        return;
      } catch (error) {
        if (isFull(error)) throw await this.noSpace(blob);
        if (!(error instanceof AppError) || error.code !== 'integrity' || tried === wholeTries) throw error;
        this.client.distrustPeers(blob.sha256);
      }
    }
  }

  private async fetchOnce(blob: Blob, signal: AbortSignal): Promise<void> {
    const path = this.store.partialPathOf(blob.sha256);
    // A partial file of an earlier try is kept: its bytes are hashed again and the pull goes on behind them.
    const file = await open(path, 'r+').catch(() => open(path, 'w+'));
    try {
      await this.write(blob, file, signal);
      await file.chmod(0o444);
      await this.store.adopt(blob.sha256);
    } catch (error) {
      await file.close();
      if (isFull(error) || (error instanceof AppError && error.code === 'integrity'))
        await this.store.dropPartial(blob.sha256);
      throw error;
    }
    this.syncBehind(file);
  }

  /**
   * Nobody waits for the disk: should the machine die before the bytes are on it, the next process finds out, because it
   * hashes each file before its first use.
   */
  private syncBehind(file: FileHandle): void {
    const synced = file
      .datasync()
      .catch(() => undefined)
      .then(() => file.close())
      .finally(() => this.syncing.delete(synced));
    this.syncing.add(synced);
  }

  /** Brings the partial file to its full length; the hash covers the bytes in the order they are written. */
  private async write(blob: Blob, file: FileHandle, signal: AbortSignal): Promise<void> {
    let { size: offset } = await file.stat();
    if (offset > blob.size) {
      await file.truncate(0);
      offset = 0;
    }
    await this.makeRoom(blob, blob.size - offset);
    const hash = createHash('sha256');
    await hashFile(file, hash, offset);
    for await (const piece of this.client.read(blob, offset, signal)) {
      const written = writeAll(file, piece, offset);
      hash.update(piece);
      offset += piece.length;
      await written;
    }
    const digest = hash.digest('hex');
    if (digest !== blob.sha256)
      throw new AppError(
        'integrity',
        `integrity: blob ${blob.sha256} came ${wholeTries} times with other bytes (${digest})`,
      );
  }

  private async makeRoom(blob: Blob, wantedBytes: number): Promise<void> {
    if ((await this.freeBytes()) >= wantedBytes) return;
    await this.evict(wantedBytes);
    if ((await this.freeBytes()) < wantedBytes) throw await this.noSpace(blob);
  }

  private async noSpace(blob: Blob): Promise<AppError> {
    const free = await this.freeBytes().catch(() => 0);
    return new AppError(
      'no_space',
      `no_space: blob ${blob.sha256} takes ${blob.size} bytes in ${this.settings.folder}, where ${free} are free; free some or give the server a larger disk`,
    );
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, offset + done)).bytesWritten;
}
