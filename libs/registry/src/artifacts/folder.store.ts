import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, mkdir, opendir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { AppError } from '@perch/contracts';
import type { ArtifactStore, ByteRange, KnownBytes, ListedObject, SignedPut, StoredObject } from './artifact.store.ts';
import { FolderMultipartStore } from './folder-multipart.store.ts';
import { type Grant, readGrant, signGrant } from './signed-url.ts';
import { settle, spool } from './spool.store.ts';

export interface FolderOptions {
  /** Absolute path. Holds `objects/`, `sums/` (the hash the store computed), `uploads/` and `incoming/`. */
  root: string;
  /** Where clients reach the control plane that serves the URLs, without a slash at the end. */
  publicUrl: () => string;
  /** Asked until it is known: it may lie in a database that comes later than we do. */
  signingKey: () => Promise<string>;
  now?: () => number;
}

const missing = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

/** The embedded default: objects are files; the control plane serves the signed URLs (`receive`, `read`). */
export class FolderStore implements ArtifactStore {
  readonly multipart: FolderMultipartStore;
  private readonly now: () => number;
  private knownKey: string | undefined;

  private constructor(private readonly options: FolderOptions) {
    this.now = options.now ?? Date.now;
    this.multipart = new FolderMultipartStore(options.root, (grant) => this.url(grant), this.now);
  }

  /** Makes the folders. What an earlier process left half-written in `incoming/` is nobody's; the sweep takes it. */
  static async open(options: FolderOptions): Promise<FolderStore> {
    for (const name of ['objects', 'sums', 'uploads', 'incoming'])
      await mkdir(join(options.root, name), { recursive: true });
    return new FolderStore(options);
  }

  async signPut(key: string, bytes: KnownBytes, expiresAt: Date): Promise<SignedPut> {
    const url = await this.url({ method: 'PUT', key, expiresAtMs: expiresAt.getTime(), ...bytes });
    return { url, headers: { 'x-amz-checksum-sha256': Buffer.from(bytes.sha256, 'hex').toString('base64') } };
  }

  async signGet(key: string, expiresAt: Date): Promise<string> {
    return this.url({ method: 'GET', key, expiresAtMs: expiresAt.getTime() });
  }

  async put(key: string, body: Readable, bytes: KnownBytes): Promise<void> {
    const file = await spool(this.folder('incoming'), body, bytes.sizeBytes);
    if (file.sizeBytes !== bytes.sizeBytes || file.sha256 !== bytes.sha256) {
      await rm(file.path, { force: true });
      const got = `${file.sizeBytes} bytes with SHA-256 ${file.sha256}`;
      throw new AppError('integrity', `object ${key}: got ${got}, wanted ${bytes.sizeBytes} with ${bytes.sha256}`);
    }
    await this.keepSum(key, file.sha256);
    await settle(file.path, this.path(key));
  }

  async putIfAbsent(key: string, body: Uint8Array): Promise<boolean> {
    const file = await spool(this.folder('incoming'), Readable.from([Buffer.from(body)]), body.length);
    try {
      await mkdir(dirname(this.path(key)), { recursive: true });
      await link(file.path, this.path(key)); // fails when something is there, so of many writers exactly one wins
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    } finally {
      await rm(file.path, { force: true });
    }
  }

  async head(key: string): Promise<StoredObject | undefined> {
    const found = await stat(this.path(key)).catch((error) => {
      if (missing(error)) return undefined;
      throw error;
    });
    if (!found?.isFile()) return undefined;
    const sum = await readFile(this.path(key, 'sums'), 'utf8').catch(() => undefined);
    return { sizeBytes: found.size, sha256: sum };
  }

  async read(key: string, range?: ByteRange): Promise<Readable> {
    const found = await this.head(key);
    if (!found) throw new AppError('not_found', `object ${key} is not in the artifact folder`);
    if (range && (range.first > range.last || range.first >= found.sizeBytes))
      throw new AppError('invalid', `object ${key} has ${found.sizeBytes} bytes; the range starts at ${range.first}`);
    return createReadStream(this.path(key), range ? { start: range.first, end: range.last } : {});
  }

  async delete(key: string): Promise<void> {
    await rm(this.path(key), { force: true });
    await rm(this.path(key, 'sums'), { force: true });
  }

  async *list(prefix: string): AsyncIterable<ListedObject> {
    const folder = await opendir(this.path(prefix)).catch((error) => {
      if (missing(error)) return undefined;
      throw error;
    });
    for await (const entry of folder ?? []) {
      const key = `${prefix}/${entry.name}`;
      if (entry.isDirectory()) yield* this.list(key);
      else if (entry.isFile()) {
        const found = await stat(this.path(key)).catch(() => undefined); // deleted meanwhile
        if (found) yield { key, sizeBytes: found.size, modifiedAt: found.mtime };
      }
    }
  }

  /** What a signed URL allows; `forbidden` unless it is whole, fits and is not over. */
  async grant(method: string, key: string, query: Record<string, string | undefined>): Promise<Grant> {
    return readGrant(await this.signingKey(), method, key, query, this.now());
  }

  /** The body of a signed PUT: of the signed length and, for a whole object, the signed hash; returns the ETag. */
  async receive(grant: Grant, body: Readable, onlyIfAbsent: boolean): Promise<string> {
    const { key, uploadId, partNumber, sha256, sizeBytes } = grant;
    if (sizeBytes === undefined) throw new AppError('forbidden', 'signed URL: it carries no size');
    if (uploadId !== undefined && partNumber !== undefined)
      return this.multipart.receive({ key, uploadId }, partNumber, sizeBytes, body);
    if (sha256 === undefined) throw new AppError('forbidden', 'signed URL: it carries no hash');
    if (onlyIfAbsent && (await this.head(key)))
      throw new AppError('precondition_failed', `object ${key} exists already`);
    await this.put(key, body, { sha256, sizeBytes });
    return sha256;
  }

  private async url(grant: Grant): Promise<string> {
    return `${this.options.publicUrl()}${signGrant(await this.signingKey(), grant)}`;
  }

  private async signingKey(): Promise<string> {
    this.knownKey ??= await this.options.signingKey();
    return this.knownKey;
  }

  /** The sum comes before the object: without the object it means nothing. */
  private async keepSum(key: string, sha256: string): Promise<void> {
    const draft = join(this.folder('incoming'), randomUUID());
    await writeFile(draft, sha256, { flag: 'wx' });
    await settle(draft, this.path(key, 'sums'));
  }

  private folder(name: string): string {
    return join(this.options.root, name);
  }

  private path(key: string, tree = 'objects'): string {
    if (!/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/.test(key) || key.split('/').some((part) => /^\.+$/.test(part)))
      throw new AppError('invalid', `object key ${JSON.stringify(key.slice(0, 80))} is not one of ours`);
    return join(this.options.root, tree, key);
  }
}
