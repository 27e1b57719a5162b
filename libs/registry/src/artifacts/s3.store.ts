import { createHash } from 'node:crypto';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { AppError } from '@perch/contracts';
import type { Metrics } from '@perch/platform';
import type { ArtifactStore, ByteRange, KnownBytes, ListedObject, SignedPut, StoredObject } from './artifact.store.ts';
import { base64OfHex, hexOfBase64, S3Calls, secondsUntil } from './s3.client.ts';
import { S3MultipartStore } from './s3-multipart.store.ts';

export interface S3Options {
  bucket: string;
  /** Before every key, without slashes at its ends; may be empty. */
  prefix: string;
  endpoint?: string;
  /** Address that signed URLs carry when clients reach the store by another one than we do. */
  publicEndpoint?: string;
  region?: string;
  /** Left out: the AWS provider chain (environment, profile, instance role). */
  accessKeyId?: string;
  secretAccessKey?: string;
  /** Default: true when an endpoint is given. */
  forcePathStyle?: boolean;
  /** Up to here our own writes are one PUT (S3 takes none over 5 GiB); default 4 GiB. */
  largestPutBytes?: number;
}

const mebibyte = 1024 ** 2;
const gibibyte = 1024 ** 3;
/** For calls of a few bytes: some are made while a row is locked. */
const shortMs = 5_000;
/** Time for a body: a minute and a second a MiB. */
const bodyMs = (sizeBytes: number): number => 60_000 + (sizeBytes / mebibyte) * 1_000;

export class S3Store implements ArtifactStore {
  readonly multipart: S3MultipartStore;
  private readonly client: S3Client;
  private readonly signer: S3Client;
  private readonly calls: S3Calls;

  constructor(
    private readonly options: S3Options,
    metrics?: Metrics,
  ) {
    this.client = new S3Client(clientConfig(options, options.endpoint));
    this.signer = options.publicEndpoint ? new S3Client(clientConfig(options, options.publicEndpoint)) : this.client;
    this.calls = new S3Calls(metrics);
    this.multipart = new S3MultipartStore(this.client, this.signer, options, this.calls);
  }

  async signPut(key: string, bytes: KnownBytes, expiresAt: Date): Promise<SignedPut> {
    const checksum = base64OfHex(bytes.sha256);
    const command = new PutObjectCommand({ ...this.at(key), ContentLength: bytes.sizeBytes, ChecksumSHA256: checksum });
    const url = await getSignedUrl(this.signer, command, {
      expiresIn: secondsUntil(expiresAt),
      unhoistableHeaders: new Set(['x-amz-checksum-sha256']), // a header, not a query: then the store compares it
    });
    return { url, headers: { 'x-amz-checksum-sha256': checksum } };
  }

  signGet(key: string, expiresAt: Date): Promise<string> {
    return getSignedUrl(this.signer, new GetObjectCommand(this.at(key)), { expiresIn: secondsUntil(expiresAt) });
  }

  async put(key: string, body: Readable, bytes: KnownBytes): Promise<void> {
    if (bytes.sizeBytes > (this.options.largestPutBytes ?? 4 * gibibyte)) return this.putInParts(key, body, bytes);
    const checksum = base64OfHex(bytes.sha256);
    const at = { ...this.at(key), ContentLength: bytes.sizeBytes, ChecksumSHA256: checksum };
    await this.calls.run('put', `object ${key}`, () =>
      this.client.send(new PutObjectCommand({ ...at, Body: body }), { requestTimeout: bodyMs(bytes.sizeBytes) }),
    );
  }

  async putIfAbsent(key: string, body: Uint8Array): Promise<boolean> {
    const command = new PutObjectCommand({ ...this.at(key), Body: body, IfNoneMatch: '*' });
    const done = await this.calls.find('put_if_absent', `object ${key}`, [412, 409], () =>
      this.client.send(command, { requestTimeout: shortMs }),
    );
    return done !== undefined;
  }

  async head(key: string): Promise<StoredObject | undefined> {
    const command = new HeadObjectCommand({ ...this.at(key), ChecksumMode: 'ENABLED' });
    const found = await this.calls.find('head', `object ${key}`, [404], () =>
      this.client.send(command, { requestTimeout: shortMs }),
    );
    return found && { sizeBytes: found.ContentLength ?? 0, sha256: hexOfBase64(found.ChecksumSHA256) };
  }

  async read(key: string, range?: ByteRange): Promise<Readable> {
    return this.readFrom(this.options.bucket, this.key(key), range);
  }

  async delete(key: string): Promise<void> {
    await this.calls.find('delete', `object ${key}`, [404], () =>
      this.client.send(new DeleteObjectCommand(this.at(key))),
    );
  }

  async *list(prefix: string): AsyncIterable<ListedObject> {
    const from = this.key(prefix).length - prefix.length;
    for (let next: string | undefined; ; ) {
      const command = new ListObjectsV2Command({
        Bucket: this.options.bucket,
        Prefix: `${this.key(prefix)}/`,
        ContinuationToken: next,
      });
      const page = await this.calls.run('list', `objects below ${prefix}`, () => this.client.send(command));
      for (const { Key, Size, LastModified } of page.Contents ?? [])
        if (Key && LastModified) yield { key: Key.slice(from), sizeBytes: Size ?? 0, modifiedAt: LastModified };
      if (!page.IsTruncated) return;
      next = page.NextContinuationToken;
    }
  }

  onApplicationShutdown(): void {
    this.client.destroy();
    this.signer.destroy();
  }

  /** An object of any bucket that our credentials may read. */
  async readFrom(bucket: string, key: string, range?: ByteRange): Promise<Readable> {
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      ...(range ? { Range: `bytes=${range.first}-${range.last}` } : {}),
    });
    const name = `object ${bucket}/${key}`;
    const found = await this.calls.find('get', name, [404], () => this.client.send(command));
    if (!found?.Body) throw new AppError('not_found', `${name} is not in the store`);
    return found.Body as Readable;
  }

  /** The store hashes parts only, so the whole is hashed on its way. */
  private async putInParts(key: string, body: Readable, bytes: KnownBytes): Promise<void> {
    const hash = createHash('sha256');
    let sizeBytes = 0;
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        sizeBytes += chunk.length;
        done(null, chunk);
      },
    });
    const params = { ...this.at(key), Body: counted };
    const upload = new Upload({ client: this.client, params, partSize: 64 * mebibyte });
    await this.calls.run('put', `object ${key}`, () => Promise.all([pipeline(body, counted), upload.done()]));
    if (sizeBytes === bytes.sizeBytes && hash.digest('hex') === bytes.sha256) return;
    await this.delete(key);
    throw new AppError('integrity', `object ${key}: the body does not have SHA-256 ${bytes.sha256}`);
  }

  private key(key: string): string {
    return this.options.prefix ? `${this.options.prefix}/${key}` : key;
  }
  private at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.options.bucket, Key: this.key(key) };
  }
}

const clientConfig = (options: S3Options, endpoint: string | undefined): S3ClientConfig => ({
  region: options.region ?? 'us-east-1',
  ...(endpoint ? { endpoint } : {}),
  forcePathStyle: options.forcePathStyle ?? endpoint !== undefined,
  ...(options.accessKeyId && options.secretAccessKey
    ? { credentials: { accessKeyId: options.accessKeyId, secretAccessKey: options.secretAccessKey } }
    : {}),
  // Only the checksums we ask for: a default one would be signed into URLs over an empty body.
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
  maxAttempts: 3,
  logger: { trace() {}, debug() {}, info() {}, warn() {}, error() {} }, // what matters is thrown and counted
  requestHandler: {
    connectionTimeout: 3_000,
    requestTimeout: 30_000,
    socketTimeout: 600_000,
    throwOnRequestTimeout: true,
  },
});
