import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Inject, Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type CreateVersionFromUrl,
  createVersionFromUrl,
  errorCodeOf,
  manifestFile,
  parseWith,
  type Version,
} from '@perch/contracts';
import type { CounterMetric, Reach } from '@perch/platform';
import type { S3Store } from './artifacts/s3.store.ts';
import { type Spooled, spool } from './artifacts/spool.store.ts';
import { BlobService } from './blob.service.ts';
import { CompleteService } from './complete.service.ts';
import { UploadService } from './upload.service.ts';
import { pathOfUrl } from './url.decide.ts';
import { type Fetched, fetchUrl, shownUrl } from './url.source.ts';

export interface ImportOptions {
  /** Default `private`: link-local and reserved addresses are refused. */
  reach?: Reach;
  /** Default 20 GiB. */
  maxBytes?: number;
  /** Default 30 s: until an answer begins, and between two pieces of it. */
  idleMs?: number;
  /** Where an object waits between its arrival and the store; default the system's temporary folder. */
  folder?: string;
}
/** Options, and who counts how imports end. */
export type ImportSettings = ImportOptions & { outcomes: CounterMetric<'outcome'> };
export const IMPORT_OPTIONS = Symbol('import options');
/** Reads `s3://` URLs; undefined: no S3 settings were given. */
export const S3_SOURCE = Symbol('s3 source');

const defaults = { reach: 'private', maxBytes: 20 * 1024 ** 3, idleMs: 30_000, folder: tmpdir() } as const;
const wholeMs = 30 * 60_000;

/** Registers an object that lies elsewhere: fetched and hashed once into a file of ours, then uploaded like any other. */
@Injectable()
export class ImportService {
  private readonly limits: Required<ImportSettings>;

  constructor(
    private readonly uploads: UploadService,
    private readonly completing: CompleteService,
    private readonly blobs: BlobService,
    @Inject(S3_SOURCE) private readonly s3: S3Store | undefined,
    @Inject(IMPORT_OPTIONS) options: ImportSettings,
  ) {
    this.limits = { ...defaults, ...options };
  }

  async create(actor: Actor, project: string, name: string, wish: CreateVersionFromUrl): Promise<Version> {
    const { url: text, path: wanted, sha256, ...described } = parseWith(createVersionFromUrl, wish, 'import');
    const url = new URL(text);
    const path = parseWith(manifestFile.shape.path, wanted ?? pathOfUrl(url), 'import: path');
    const folder = await mkdtemp(join(this.limits.folder, 'perch-import-'));
    let outcome = 'ok';
    try {
      const file = await this.fetch(url, folder);
      if (sha256 !== undefined && sha256 !== file.sha256)
        throw new AppError('integrity', `URL ${shownUrl(url)} has SHA-256 ${file.sha256}, wanted ${sha256}`);
      const { version } = await this.uploads.start(actor, project, name, {
        ...described,
        files: [{ path, sha256: file.sha256, size: file.sizeBytes }],
        lineage: { sourceUri: shownUrl(url), ...described.lineage },
      });
      if (version.state === 'uploading')
        await this.blobs.fill(version.id, file.sha256, () => createReadStream(file.path));
      return await this.completing.complete(actor, project, name, version.number);
    } catch (error) {
      outcome = errorCodeOf(error);
      throw error;
    } finally {
      this.limits.outcomes.add({ outcome });
      await rm(folder, { recursive: true, force: true });
    }
  }

  private async fetch(url: URL, folder: string): Promise<Spooled> {
    const { body, sizeBytes } = await this.open(url);
    const { maxBytes } = this.limits;
    if (sizeBytes !== undefined && sizeBytes > maxBytes) {
      body.destroy();
      throw tooLarge(url, maxBytes);
    }
    try {
      const file = await spool(folder, body, maxBytes, AbortSignal.timeout(wholeMs));
      if (sizeBytes === undefined || sizeBytes === file.sizeBytes) return file;
      throw new AppError(
        'upstream',
        `URL ${shownUrl(url)} ended after ${file.sizeBytes} of ${sizeBytes} bytes; try again`,
      );
    } catch (error) {
      if (error instanceof AppError && error.code === 'too_large') throw tooLarge(url, maxBytes);
      if (error instanceof AppError && error.code === 'cancelled')
        throw new AppError('upstream', `URL ${shownUrl(url)} broke off in the middle; try again`, { cause: error });
      throw error;
    }
  }

  private async open(url: URL): Promise<Fetched> {
    if (url.protocol !== 's3:') return fetchUrl(url, this.limits);
    if (!this.s3)
      throw new AppError('invalid', `URL ${shownUrl(url)}: s3:// wants S3 settings (PERCH_S3_…) to read it with`);
    const body = await this.s3.readFrom(url.hostname, decodeURIComponent(url.pathname.slice(1)));
    return { body, sizeBytes: undefined };
  }
}

const tooLarge = (url: URL, maxBytes: number): AppError =>
  new AppError(
    'too_large',
    `URL ${shownUrl(url)} is over ${maxBytes} bytes; download it and use \`perch model upload\``,
  );
