import { AppError, innerMessage } from '@perch/contracts';
import { backoffMs, pause } from '@perch/platform';
import type { Dispatcher } from 'undici';
import { Slots } from '../slots.ts';
import type { Blob, UrlBook } from './blob.source.ts';
import { PartQueue } from './part-queue.ts';
import { type RangeRequest, type RangeSink, requestRange } from './range.client.ts';
import { SlabPool } from './slab-pool.ts';
import { SocketRangeClient, UnusualAnswer } from './socket-range.client.ts';

export interface BlobClientSettings {
  /** Files over this are fetched in ranges of this size. */
  partBytes: number;
  /** Ranges of one file in flight. */
  partsPerBlob: number;
  /** Ranges of all files in flight: with `partBytes` the bound on memory. */
  partsAtOnce: number;
  headersTimeoutMs: number;
  /** Longest silence within a body. */
  idleTimeoutMs: number;
  /** Tries in a row that bring no byte before a pull gives up. */
  tries: number;
  firstBackoffMs: number;
}

export const blobClientSettings: BlobClientSettings = {
  partBytes: 8 * 1024 ** 2,
  partsPerBlob: 4,
  partsAtOnce: 8,
  headersTimeoutMs: 15_000,
  idleTimeoutMs: 30_000,
  tries: 6,
  firstBackoffMs: 100,
};

type Timeouts = Pick<BlobClientSettings, 'headersTimeoutMs' | 'idleTimeoutMs'>;
/** A neighbour that hesitates is no help: the store is there. */
const peerTimeouts: Timeouts = { headersTimeoutMs: 2_000, idleTimeoutMs: 5_000 };

/** The store answered a range request with the whole file. */
class WholeFileAnswer extends Error {}

const isFinal = (error: unknown): boolean => error instanceof WholeFileAnswer || error instanceof AppError;

/** Reads blobs over HTTP by parallel ranges, in order; resumes after cuts, asks for a new address on 403. */
export class BlobClient {
  private readonly urls: UrlBook;
  private readonly dispatcher: Dispatcher;
  private readonly settings: BlobClientSettings;
  private readonly slots: Slots;
  private readonly pool = new SlabPool();
  private readonly sockets = new SocketRangeClient();
  /** Stores whose answers are framed in a way that only undici reads. */
  private readonly unusual = new Set<string>();
  private reading = 0;

  constructor(urls: UrlBook, dispatcher: Dispatcher, settings: Partial<BlobClientSettings> = {}) {
    this.urls = urls;
    this.dispatcher = dispatcher;
    this.settings = { ...blobClientSettings, ...settings };
    this.slots = new Slots(this.settings.partsAtOnce);
  }

  /** Wrong bytes came under this hash: only the store is asked for it from now on. */
  distrustPeers(hash: string): void {
    this.urls.distrustPeers(hash);
  }

  /** Closes connections that wait. */
  close(): void {
    this.sockets.close();
  }

  /** Gets the addresses of blobs that will be read, in as few requests as it takes. A fault is told when they are read. */
  async announce(hashes: readonly string[]): Promise<void> {
    await Promise.allSettled(hashes.map((hash) => this.urls.urlOf(hash)));
  }

  /**
   * The bytes from `from` to the end, in order; each piece is good until the next is asked for. Throws `not_found`, `integrity` (the store holds
   * another length), `unavailable` (gave up after several tries) or `cancelled`.
   */
  async *read(blob: Blob, from: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let offset = from;
    for (const partBytes of [this.settings.partBytes, Number.POSITIVE_INFINITY]) {
      try {
        for await (const piece of this.readParts(blob, { from: offset, partBytes }, signal)) {
          offset += piece.length;
          yield piece;
        }
        return;
      } catch (error) {
        if (!(error instanceof WholeFileAnswer)) throw error;
      }
    }
  }

  private async *readParts(
    blob: Blob,
    range: { from: number; partBytes: number },
    outer: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const stop = new AbortController();
    const signal = AbortSignal.any([outer, stop.signal]);
    const ahead: PartQueue[] = [];
    let next = range.from;
    const startNext = () => {
      const end = Math.min(blob.size, next + range.partBytes);
      const part = new PartQueue({ from: next, end }, Math.min(range.partBytes, this.settings.partBytes), this.pool);
      next = end;
      ahead.push(part);
      void this.fill(blob, part, signal);
    };
    this.reading += 1;
    try {
      while (next < blob.size || ahead.length > 0) {
        while (next < blob.size && ahead.length < this.settings.partsPerBlob) startNext();
        yield* ahead[0]!.pieces();
        ahead.shift();
      }
    } finally {
      stop.abort();
      for (const part of ahead) part.abandon();
      this.reading -= 1;
      if (this.reading === 0) this.pool.clear();
    }
  }

  /** Fetches one part into its queue; never throws: what went wrong is told to the reader. */
  private async fill(blob: Blob, part: PartQueue, signal: AbortSignal): Promise<void> {
    const release = await this.slots.take();
    try {
      await this.fetchPart(blob, part, signal);
      part.end();
      await part.drained();
    } catch (error) {
      part.fail(signal.aborted ? new AppError('cancelled', `pull of blob ${blob.sha256} was called off`) : error);
    } finally {
      release();
    }
  }

  private async fetchPart(blob: Blob, part: PartQueue, signal: AbortSignal): Promise<void> {
    const { tries, firstBackoffMs } = this.settings;
    let refused: string | undefined;
    for (let failures = 0; part.at < part.range.end; ) {
      signal.throwIfAborted();
      const before = part.at;
      const url = await this.urls.urlOf(blob.sha256, refused);
      const peer = this.urls.peerOf(blob.sha256);
      if (peer !== undefined) {
        await this.fetchFromPeer(blob, peer, part, signal);
        continue;
      }
      try {
        const status = await this.fetchOnce(blob, url, part, signal);
        if (status !== 403 && status !== 404) continue;
        if (status === 404 && refused !== undefined)
          throw new AppError(
            'not_found',
            `blob ${blob.sha256} is gone from the artifact store; upload its version again`,
          );
        refused = url;
        throw new Error(`the store answered ${status}`);
      } catch (error) {
        signal.throwIfAborted();
        if (isFinal(error)) throw error;
        failures = part.at > before ? 1 : failures + 1;
        if (failures >= tries)
          throw new AppError('unavailable', `pull of blob ${blob.sha256}: ${innerMessage(error)}`, { cause: error });
        // The first new address is asked for at once; an expired one is no fault of the store.
        if (refused === url && failures === 1) continue;
        await pause(backoffMs(failures, firstBackoffMs, 2_000), signal);
      }
    }
  }

  /** What a neighbour brings of the part; after any fault it is not asked for this blob again. */
  private async fetchFromPeer(blob: Blob, peer: string, part: PartQueue, signal: AbortSignal): Promise<void> {
    try {
      const status = await this.fetchOnce(blob, peer, part, signal, peerTimeouts);
      if (isRefusal(status)) this.urls.dropPeer(blob.sha256, peer);
    } catch {
      signal.throwIfAborted();
      this.urls.dropPeer(blob.sha256, peer);
    }
  }

  /** One request for what the part still lacks. Returns 403 or 404 as they are; throws when the body ends early. */
  private async fetchOnce(
    blob: Blob,
    url: string,
    part: PartQueue,
    signal: AbortSignal,
    { headersTimeoutMs, idleTimeoutMs }: Timeouts = this.settings,
  ): Promise<number> {
    const whole = part.at === 0 && part.range.end === blob.size;
    const range = whole ? undefined : `bytes=${part.at}-${part.range.end - 1}`;
    const sink = new PartSink(blob, part);
    await this.request({ url, range, dispatcher: this.dispatcher, headersTimeoutMs, idleTimeoutMs, signal }, sink);
    if (isRefusal(sink.status)) return sink.status;
    if (part.at < part.range.end) throw new Error('the connection ended before the last byte');
    return sink.status;
  }

  private async request(request: RangeRequest, sink: RangeSink): Promise<void> {
    const { origin, protocol } = new URL(request.url);
    if (protocol !== 'http:' || this.unusual.has(origin)) return requestRange(request, sink);
    try {
      await this.sockets.request(request, sink);
    } catch (error) {
      if (!(error instanceof UnusualAnswer)) throw error;
      this.unusual.add(origin);
      await requestRange(request, sink);
    }
  }
}

const isRefusal = (status: number) => status === 403 || status === 404;

/** Puts a body into its part, and tells what a status means for it. */
class PartSink implements RangeSink {
  status = 0;
  private readonly blob: Blob;
  private readonly part: PartQueue;
  private toSkip = 0;

  constructor(blob: Blob, part: PartQueue) {
    this.blob = blob;
    this.part = part;
  }

  onStatus(status: number): void {
    const { blob, part } = this;
    this.status = status;
    if (status === 206 || isRefusal(status)) return;
    if (status === 416) throw lengthFault(blob);
    if (status !== 200) throw new Error(`the store answered ${status}`);
    if (part.range.end !== blob.size) throw new WholeFileAnswer();
    this.toSkip = part.at;
  }

  onChunk(chunk: Uint8Array): boolean {
    const { part } = this;
    if (isRefusal(this.status)) return true;
    const fresh = this.toSkip > 0 ? chunk.subarray(Math.min(this.toSkip, chunk.length)) : chunk;
    this.toSkip = Math.max(0, this.toSkip - chunk.length);
    if (fresh.length === 0) return true;
    if (part.at + fresh.length > part.range.end) throw lengthFault(this.blob);
    return part.push(fresh);
  }

  hasRoom(): Promise<void> {
    return this.part.hasRoom();
  }
}

const lengthFault = (blob: Blob) =>
  new AppError('integrity', `blob ${blob.sha256}: the store holds another length than ${blob.size} bytes`);
