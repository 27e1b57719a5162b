import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../replace-file.ts';
import type { Blob } from './blob.source.ts';
import { sha256OfFile } from './file-hash.ts';

/** What tells that a file was touched. */
export interface Signature {
  size: number;
  mtimeMs: number;
  ino: number;
  dev: number;
}

export interface StoredBlob {
  hash: string;
  sizeBytes: number;
  /** When it was last needed, as far as the disk knows. */
  neededAtMs: number;
}

const isHash = (name: string) => /^[0-9a-f]{64}$/.test(name);
export const sameFile = (a: Signature, b: Signature): boolean =>
  a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino && a.dev === b.dev;

export async function signatureOf(path: string): Promise<Signature | undefined> {
  const info = await stat(path).catch(() => undefined);
  return info?.isFile() ? { size: info.size, mtimeMs: info.mtimeMs, ino: info.ino, dev: info.dev } : undefined;
}

/**
 * Blobs on disk, each in a file named by its hash. A file is trusted only when this process hashed it (while it was
 * written, or on its first use) and its size, time and inode are still the same.
 */
export class BlobStore {
  private readonly folder: string;
  private readonly proven = new Map<string, Signature>();

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Makes the folders; call once before anything else. */
  async open(): Promise<void> {
    await mkdir(join(this.folder, 'blobs'), { recursive: true });
    await mkdir(join(this.folder, 'partial'), { recursive: true });
  }

  pathOf(hash: string): string {
    return join(this.folder, 'blobs', hash);
  }

  partialPathOf(hash: string): string {
    return join(this.folder, 'partial', hash);
  }

  /** Cheap look, no hashing: which of these are absent, of another size, or were changed since they were proven. */
  async missing(blobs: Iterable<Blob>): Promise<Set<string>> {
    const absent = new Set<string>();
    await Promise.all(
      [...blobs].map(async (blob) => {
        const found = await signatureOf(this.pathOf(blob.sha256));
        const proven = this.proven.get(blob.sha256);
        if (!found || found.size !== blob.size || (proven && !sameFile(proven, found))) absent.add(blob.sha256);
      }),
    );
    return absent;
  }

  /** The file of a blob as it was when this process proved it. */
  provenFile(hash: string): Signature | undefined {
    return this.proven.get(hash);
  }

  /** True when the file is what its name says; hashes it unless that was done since it last changed. Removes a corrupt one. */
  async verify(blob: Blob): Promise<boolean> {
    const found = await signatureOf(this.pathOf(blob.sha256));
    if (!found) return false;
    const proven = this.proven.get(blob.sha256);
    if (proven && sameFile(proven, found)) return true;
    const intact =
      found.size === blob.size && (await sha256OfFile(this.pathOf(blob.sha256), blob.size)) === blob.sha256;
    if (intact) this.proven.set(blob.sha256, found);
    else await this.drop(blob.sha256);
    return intact;
  }

  /** Takes a complete, hashed and synced partial file into the store. */
  async adopt(hash: string): Promise<void> {
    await rename(this.partialPathOf(hash), this.pathOf(hash));
    await syncFolder(join(this.folder, 'blobs'));
    const signature = await signatureOf(this.pathOf(hash));
    if (signature) this.proven.set(hash, signature);
  }

  async drop(hash: string): Promise<void> {
    this.proven.delete(hash);
    await rm(this.pathOf(hash), { force: true });
  }

  async list(): Promise<StoredBlob[]> {
    const names = (await readdir(join(this.folder, 'blobs'))).filter(isHash);
    const found = await Promise.all(
      names.map(async (hash) => {
        const info = await stat(this.pathOf(hash)).catch(() => undefined);
        return info && { hash, sizeBytes: info.size, neededAtMs: info.atimeMs };
      }),
    );
    return found.filter((blob) => blob !== undefined);
  }

  /** Hashes of downloads that were begun. */
  async listPartial(): Promise<string[]> {
    return (await readdir(join(this.folder, 'partial'))).filter(isHash);
  }

  async dropPartial(hash: string): Promise<void> {
    await rm(this.partialPathOf(hash), { force: true });
  }

  /** Writes down when a blob was last needed (as its access time), so that the order outlives the process. */
  async noteNeeded(hash: string, atMs: number): Promise<void> {
    const path = this.pathOf(hash);
    const before = await signatureOf(path);
    const proven = this.proven.get(hash);
    if (!before) return;
    await utimes(path, atMs / 1_000, before.mtimeMs / 1_000).catch(() => undefined);
    // The modification time may come back rounded; what was proven stays proven.
    const after = await signatureOf(path);
    if (proven && after && sameFile(proven, before) && after.size === before.size) this.proven.set(hash, after);
  }
}
