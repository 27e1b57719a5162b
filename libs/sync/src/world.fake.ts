import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type DesiredModel, digestOf, sha256Hex, tritonModelName } from '@perch/contracts';
import type { BlobSource } from './blobs/blob.source.ts';

/** One request to the fake store, before it is answered. */
export interface BlobRequest {
  hash: string;
  from: number;
  to: number;
  request: IncomingMessage;
  response: ServerResponse;
}

/** An HTTP store of blobs with signed-looking addresses; `intercept` may answer a request itself (return true) to make trouble. */
export class FakeBlobStore implements BlobSource {
  readonly blobs = new Map<string, Buffer>();
  readonly gets: { hash: string; from: number; to: number }[] = [];
  urlCalls = 0;
  /** Addresses given before this serial are refused with 403. */
  validFrom = 0;
  intercept: ((request: BlobRequest) => boolean) | undefined;
  private serial = 0;
  private server: Server | undefined;

  async start(): Promise<this> {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise<void>((resolve) => this.server!.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  put(bytes: Buffer | string): { sha256: string; size: number } {
    const buffer = Buffer.from(bytes);
    const sha256 = sha256Hex(buffer);
    this.blobs.set(sha256, buffer);
    return { sha256, size: buffer.length };
  }

  async urls(hashes: readonly string[]): Promise<Record<string, { url: string; size: number }>> {
    this.urlCalls += 1;
    this.serial += 1;
    const { port } = this.server!.address() as AddressInfo;
    const known = hashes.flatMap((hash) => {
      const blob = this.blobs.get(hash);
      return blob
        ? [[hash, { url: `http://127.0.0.1:${port}/${hash}?sig=${this.serial}`, size: blob.length }] as const]
        : [];
    });
    return Object.fromEntries(known);
  }

  /** Addresses given so far are good no more. */
  expireUrls(): void {
    this.validFrom = this.serial + 1;
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, 'http://x');
    const hash = url.pathname.slice(1);
    const blob = this.blobs.get(hash);
    if (Number(url.searchParams.get('sig')) < this.validFrom) return void response.writeHead(403).end('expired');
    if (!blob) return void response.writeHead(404).end();
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const from = range ? Number(range[1]) : 0;
    const to = range ? Math.min(Number(range[2]), blob.length - 1) : blob.length - 1;
    this.gets.push({ hash, from, to });
    if (this.intercept?.({ hash, from, to, request, response })) return;
    const headers = { 'content-length': to - from + 1, 'content-range': `bytes ${from}-${to}/${blob.length}` };
    response.writeHead(range ? 206 : 200, headers).end(blob.subarray(from, to + 1));
  }
}

const engine: DesiredModel['engine'] = {
  platform: 'onnxruntime_onnx',
  backend: 'onnxruntime',
  maxBatchSize: 8,
  dynamicBatching: null,
  instances: [],
  inputs: [{ name: 'x', type: 'FP32', dims: [4] }],
  outputs: [{ name: 'y', type: 'FP32', dims: [4] }],
  parameters: {},
  defaultModelFilename: null,
  config: null,
};

/** A desired model of one file, with its name; every field filled. */
export function desiredModelOf(
  store: FakeBlobStore,
  bytes: Buffer | string,
  options: { name?: string; version?: number; extra?: Record<string, string> } = {},
): [string, DesiredModel] {
  const files = [{ path: '1/model.onnx', ...store.put(bytes) }];
  for (const [path, text] of Object.entries(options.extra ?? {})) files.push({ path, ...store.put(text) });
  const digest = digestOf({ files, engine });
  return [tritonModelName(options.name ?? 'toy', options.version ?? 1, digest), { files, engine, digest }];
}
