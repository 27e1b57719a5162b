import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListPartsCommand,
  type ListPartsCommandOutput,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { AppError } from '@perch/contracts';
import type { MultipartStore, MultipartUpload, StoredPart, UploadRef } from './artifact.store.ts';
import { type S3Calls, secondsUntil } from './s3.client.ts';

/** Some servers copy all parts into one file before they answer. */
const completeMs = 600_000;

export class S3MultipartStore implements MultipartStore {
  constructor(
    private readonly client: S3Client,
    private readonly signer: S3Client,
    private readonly place: { bucket: string; prefix: string },
    private readonly calls: S3Calls,
  ) {}

  async start(key: string): Promise<string> {
    const command = new CreateMultipartUploadCommand(this.at(key));
    const { UploadId } = await this.calls.run('multipart_start', `object ${key}`, () => this.client.send(command));
    if (!UploadId) throw new AppError('unavailable', `object ${key}: the store gave no upload id; try again`);
    return UploadId;
  }

  signPart(upload: UploadRef, partNumber: number, sizeBytes: number, expiresAt: Date): Promise<string> {
    const command = new UploadPartCommand({
      ...this.ref(upload),
      PartNumber: partNumber,
      ContentLength: sizeBytes,
    });
    return getSignedUrl(this.signer, command, { expiresIn: secondsUntil(expiresAt) });
  }

  async parts(upload: UploadRef): Promise<StoredPart[] | undefined> {
    const parts: StoredPart[] = [];
    for (let marker: string | undefined; ; ) {
      const command = new ListPartsCommand({ ...this.ref(upload), ...(marker ? { PartNumberMarker: marker } : {}) });
      const page: ListPartsCommandOutput | undefined = await this.calls.find(
        'multipart_parts',
        `upload of ${upload.key}`,
        [404],
        () => this.client.send(command),
      );
      if (!page) return undefined;
      for (const { PartNumber, Size, ETag } of page.Parts ?? [])
        parts.push({ partNumber: PartNumber ?? 0, sizeBytes: Size ?? 0, etag: ETag ?? '' });
      if (!page.IsTruncated || !page.NextPartNumberMarker) return parts;
      marker = page.NextPartNumberMarker;
    }
  }

  async complete(upload: UploadRef, parts: readonly StoredPart[]): Promise<void> {
    const command = new CompleteMultipartUploadCommand({
      ...this.ref(upload),
      MultipartUpload: { Parts: parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: etag })) },
    });
    await this.calls.run('multipart_complete', `upload of ${upload.key}`, () =>
      this.client.send(command, { requestTimeout: completeMs }),
    );
  }

  async abort(upload: UploadRef): Promise<void> {
    const command = new AbortMultipartUploadCommand(this.ref(upload));
    await this.calls.find('multipart_abort', `upload of ${upload.key}`, [404], () => this.client.send(command));
  }

  async *list(): AsyncIterable<MultipartUpload> {
    const { bucket, prefix } = this.place;
    const folder = prefix ? `${prefix}/` : '';
    for (let marker: { KeyMarker?: string; UploadIdMarker?: string } = {}; ; ) {
      const command = new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: `${folder}blobs/`, ...marker });
      const page: ListMultipartUploadsCommandOutput = await this.calls.run('multipart_list', `bucket ${bucket}`, () =>
        this.client.send(command),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? [])
        if (Key?.startsWith(folder) && UploadId)
          yield { key: Key.slice(folder.length), uploadId: UploadId, startedAt: Initiated ?? new Date(0) };
      if (!page.IsTruncated || !page.NextKeyMarker) return;
      marker = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
    }
  }

  private at(key: string): { Bucket: string; Key: string } {
    const { bucket, prefix } = this.place;
    return { Bucket: bucket, Key: prefix ? `${prefix}/${key}` : key };
  }
  private ref({ key, uploadId }: UploadRef) {
    return { ...this.at(key), UploadId: uploadId };
  }
}
