import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeBlobStore } from '../world.fake.ts';
import { BlobCache } from './blob.cache.ts';
import { BlobClient } from './blob.client.ts';
import { UrlBook } from './blob.source.ts';

const never = new AbortController().signal;
/** The request was answered. */
const took = (_answered: unknown): boolean => true;

describe('pulling from neighbours', () => {
  let folder: string;
  let store: FakeBlobStore;
  let peer: FakeBlobStore;
  let cache: BlobCache;
  let client: BlobClient;
  const dispatcher = new Agent();
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-neighbours-'));
    store = await new FakeBlobStore().start();
    peer = await new FakeBlobStore().start();
    const source = {
      urls: async (hashes: readonly string[]) => {
        const [here, near] = [await store.urls(hashes), await peer.urls(hashes)];
        return Object.fromEntries(
          Object.entries(here).map(([hash, entry]) => [hash, { ...entry, peers: near[hash] ? [near[hash].url] : [] }]),
        );
      },
    };
    client = new BlobClient(new UrlBook(source), dispatcher, { partBytes: 1_000, firstBackoffMs: 1 });
    cache = new BlobCache(client, { folder, minFreeBytes: 0 });
    await cache.open();
  });
  afterEach(async () => {
    await cache.close();
    await store.stop();
    await peer.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const bytes = randomBytes(3_500);
  const pulled = async () => {
    const blob = store.put(bytes);
    await cache.pull(blob, never);
    expect((await readFile(cache.store.pathOf(blob.sha256))).equals(bytes)).toBe(true);
    return { fromPeer: peer.gets.length, fromStore: store.gets.length };
  };

  it('leaves the store alone', async () => {
    peer.put(bytes);
    expect(await pulled()).toEqual({ fromPeer: 4, fromStore: 0 });
  });

  it('takes from the store what no neighbour has', async () => {
    expect(await pulled()).toEqual({ fromPeer: 0, fromStore: 4 });
  });

  it.each<[string, FakeBlobStore['intercept']]>([
    ['refuses', ({ response }) => took(response.writeHead(403).end())],
    ['has dropped it', ({ response }) => took(response.writeHead(404).end())],
    ['has no time', ({ response }) => took(response.writeHead(503).end())],
    ['cuts the connection', ({ response }) => took(response.destroy())],
    [
      'brings too much',
      ({ response }) => took(response.writeHead(206, { 'content-length': 5_000 }).end(Buffer.alloc(5_000))),
    ],
  ])('goes on at the store when a neighbour %s', async (_, intercept) => {
    peer.put(bytes);
    peer.intercept = intercept;
    expect((await pulled()).fromStore).toBe(4);
  });

  it('keeps what a neighbour brought before it was cut', async () => {
    peer.put(bytes);
    peer.intercept = ({ from, response }) => {
      response
        .writeHead(206, { 'content-length': 1_000 })
        .write(bytes.subarray(from, from + 600), () => response.destroy());
      return true;
    };
    await pulled();
    expect(store.gets.some(({ from }) => from % 1_000 === 600)).toBe(true);
  });

  it('believes no bytes, whoever brings them, and asks the store alone after wrong ones', async () => {
    peer.put(bytes);
    peer.intercept = ({ from, to, response }) => {
      response.writeHead(206, { 'content-length': to - from + 1 }).end(Buffer.alloc(to - from + 1, 7));
      return true;
    };
    expect(await pulled()).toEqual({ fromPeer: 4, fromStore: 4 });
  });
});
