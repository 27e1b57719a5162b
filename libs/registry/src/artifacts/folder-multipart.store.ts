import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError } from '@perch/contracts';
import type { MultipartStore, MultipartUpload, StoredPart, UploadRef } from './artifact.store.ts';
import type { Grant } from './signed-url.ts';
import { concatenate, settle, spool } from './spool.store.ts';

const staleFileMs = 24 * 3_600_000;
const isUploadId = (text: string): boolean => /^[0-9a-f-]{36}$/.test(text);

/** Parts are files `<number>` in `uploads/<id>/`; `upload.json` there says for which key. */
export class FolderMultipartStore implements MultipartStore {
  constructor(
    private readonly root: string,
    private readonly sign: (grant: Grant) => Promise<string>,
    private readonly now: () => number,
  ) {}

  async start(key: string): Promise<string> {
    const uploadId = randomUUID();
    await mkdir(this.folder(uploadId));
    const draft = join(this.root, 'incoming', randomUUID());
    await writeFile(draft, JSON.stringify({ key, startedAt: this.now() }), { flag: 'wx' });
    await settle(draft, join(this.folder(uploadId), 'upload.json'));
    return uploadId;
  }

  async signPart(upload: UploadRef, partNumber: number, sizeBytes: number, expiresAt: Date): Promise<string> {
    return this.sign({ method: 'PUT', ...upload, partNumber, sizeBytes, expiresAtMs: expiresAt.getTime() });
  }

  async parts(upload: UploadRef): Promise<StoredPart[] | undefined> {
    if ((await this.about(upload.uploadId))?.key !== upload.key) return undefined;
    const names = (await readdir(this.folder(upload.uploadId))).filter((name) => /^\d+$/.test(name));
    const parts = names.map(async (name) => {
      const { size, mtimeMs } = await stat(join(this.folder(upload.uploadId), name));
      return { partNumber: Number(name), sizeBytes: size, etag: `${size}-${mtimeMs}` };
    });
    return (await Promise.all(parts)).sort((a, b) => a.partNumber - b.partNumber);
  }

  async complete(upload: UploadRef, wanted: readonly StoredPart[]): Promise<void> {
    const found = new Map((await this.parts(upload))?.map((part) => [part.partNumber, part.etag]));
    if (wanted.length === 0 || wanted.some((part) => found.get(part.partNumber) !== part.etag))
      throw new AppError('invalid', `upload ${upload.uploadId}: it does not hold the parts that were named`);
    const whole = join(this.root, 'incoming', randomUUID());
    try {
      await concatenate(
        wanted.map((part) => join(this.folder(upload.uploadId), String(part.partNumber))),
        whole,
      );
      await settle(whole, join(this.root, 'objects', upload.key));
    } finally {
      await rm(whole, { force: true });
    }
    await this.abort(upload);
  }

  async abort(upload: UploadRef): Promise<void> {
    if (isUploadId(upload.uploadId)) await rm(this.folder(upload.uploadId), { recursive: true, force: true });
  }

  /** Takes away, on the way, what senders that died left in `incoming/` a day ago. */
  async *list(): AsyncIterable<MultipartUpload> {
    for (const name of await readdir(join(this.root, 'incoming'))) {
      const path = join(this.root, 'incoming', name);
      const found = await stat(path).catch(() => undefined);
      if (found && found.mtimeMs < this.now() - staleFileMs) await rm(path, { force: true });
    }
    for (const uploadId of await readdir(join(this.root, 'uploads'))) {
      const about = await this.about(uploadId);
      if (about) yield { key: about.key, uploadId, startedAt: new Date(about.startedAt) };
    }
  }

  async receive(upload: UploadRef, partNumber: number, sizeBytes: number, body: Readable): Promise<string> {
    if ((await this.about(upload.uploadId))?.key !== upload.key)
      throw new AppError('not_found', `upload ${upload.uploadId} is over or was aborted; ask for a fresh URL`);
    const file = await spool(join(this.root, 'incoming'), body, sizeBytes);
    if (file.sizeBytes !== sizeBytes) {
      await rm(file.path, { force: true });
      throw new AppError('integrity', `part ${partNumber} has ${file.sizeBytes} bytes, wanted ${sizeBytes}`);
    }
    // no folder is made here: an upload aborted meanwhile must not come back
    await rename(file.path, join(this.folder(upload.uploadId), String(partNumber)));
    return file.sha256;
  }

  private async about(uploadId: string): Promise<{ key: string; startedAt: number } | undefined> {
    if (!isUploadId(uploadId)) return undefined;
    const text = await readFile(join(this.folder(uploadId), 'upload.json'), 'utf8').catch(() => undefined);
    return text === undefined ? undefined : JSON.parse(text);
  }

  private folder(uploadId: string): string {
    return join(this.root, 'uploads', uploadId);
  }
}
