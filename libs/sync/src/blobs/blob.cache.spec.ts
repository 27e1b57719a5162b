import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256Hex } from '@perch/contracts';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeBlobStore } from '../world.fake.ts';
import { BlobCache, type BlobCacheSettings } from './blob.cache.ts';
import { BlobClient, type BlobClientSettings } from './blob.client.ts';
import { UrlBook } from './blob.source.ts';

describe('BlobCache', () => {
  let folder: string;
  let store: FakeBlobStore;
  let dispatcher: Agent;
  const never = new AbortController().signal;
  setMaxListeners(0, never);

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-cache-'));
    store = await new FakeBlobStore().start();
    dispatcher = new Agent();
  });
  afterEach(async () => {
    await dispatcher.destroy();
    await store.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const open = async (download: Partial<BlobClientSettings> = {}, settings: Partial<BlobCacheSettings> = {}) => {
    const client = new BlobClient(new UrlBook(store), dispatcher, {
      partBytes: 1_000,
      firstBackoffMs: 1,
      headersTimeoutMs: 500,
      idleTimeoutMs: 100,
      ...download,
    });
    const cache = new BlobCache(client, { folder, minFreeBytes: 0, ...settings });
    await cache.open();
    return cache;
  };
  const contentOf = (cache: BlobCache, hash: string) => readFile(cache.store.pathOf(hash));
  const partial = () => readdir(join(folder, 'partial'));

  it.each([0, 1, 999, 1_000, 1_001, 10_500])('pulls %i bytes by ranges and verifies them', async (sizeBytes) => {
    const bytes = randomBytes(sizeBytes);
    const blob = store.put(bytes);
    const cache = await open();
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
    expect(store.gets).toHaveLength(Math.ceil(sizeBytes / 1_000));
    expect(await cache.store.missing([blob])).toEqual(new Set());
    expect(cache.sizeBytes).toBe(sizeBytes);
    expect((await stat(cache.store.pathOf(blob.sha256))).mode & 0o777).toBe(0o444);
    expect(await partial()).toEqual([]);
  });

  it('fetches once for all who ask at the same time, and not again', async () => {
    const blob = store.put(randomBytes(5_000));
    const cache = await open();
    await Promise.all(Array.from({ length: 10 }, () => cache.pull(blob, never)));
    await cache.pull(blob, never);
    expect(store.gets).toHaveLength(5);
    expect(store.urlCalls).toBe(1);
  });

  it('asks for the addresses of many blobs at once', async () => {
    const blobs = Array.from({ length: 30 }, () => store.put(randomBytes(10)));
    const cache = await open();
    await cache.pullAll(blobs, never);
    expect(store.urlCalls).toBe(1);
    expect(await cache.store.missing(blobs)).toEqual(new Set());
  });

  it('goes on where a connection was cut', async () => {
    const bytes = randomBytes(3_000);
    const blob = store.put(bytes);
    let cuts = 5;
    store.intercept = ({ from, to, response }) => {
      if (cuts-- <= 0) return false;
      response.writeHead(206, { 'content-length': to - from + 1 });
      response.write(bytes.subarray(from, from + 100), () => response.destroy());
      return true;
    };
    const cache = await open();
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
    expect(store.gets.map(({ from }) => from % 1_000).filter((from) => from > 0).length).toBeGreaterThan(0);
    const fetched = store.gets.reduce((sum, { from, to }) => sum + to - from + 1, 0);
    expect(fetched).toBeLessThan(3_000 + 5 * 1_000);
  });

  it('goes on when a connection falls silent, and gives up with a reason when nothing comes any more', async () => {
    const bytes = randomBytes(500);
    const blob = store.put(bytes);
    let silent = 1;
    store.intercept = ({ response }) => {
      if (silent-- <= 0) return false;
      response.writeHead(200, { 'content-length': 500 }).write(bytes.subarray(0, 10));
      return true;
    };
    const cache = await open({ tries: 3 });
    await cache.pull(blob, never);
    expect(store.gets[1]).toMatchObject({ from: 10, to: 499 });

    const lost = store.put(randomBytes(500));
    store.intercept = ({ response }) => {
      response.destroy();
      return true;
    };
    const fresh = await open({ tries: 3 });
    await expect(fresh.pull(lost, never)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(lost.sha256),
    });
    expect(store.gets.filter(({ hash }) => hash === lost.sha256)).toHaveLength(3);
  });

  it('asks for new addresses on 403 and resumes', async () => {
    const bytes = randomBytes(5_000);
    const blob = store.put(bytes);
    let answered = 0;
    store.intercept = () => {
      answered += 1;
      if (answered === 2) store.expireUrls();
      return false;
    };
    const cache = await open({ partsPerBlob: 1 });
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
    expect(store.urlCalls).toBe(2);
    expect(store.gets).toHaveLength(5);
  });

  it('says so when the store refuses for good, or lacks the blob', async () => {
    const blob = store.put(randomBytes(10));
    store.validFrom = Number.POSITIVE_INFINITY;
    const cache = await open({ tries: 3 });
    await expect(cache.pull(blob, never)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/403/),
    });
    const unknown = { sha256: 'f'.repeat(64), size: 3 };
    await expect(cache.pull(unknown, never)).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('f'.repeat(64)),
    });
  });

  it('pulls again what came with wrong bytes, and keeps nothing of it when it stays wrong', async () => {
    const bytes = randomBytes(2_500);
    const blob = store.put(bytes);
    let wrong = 2;
    store.intercept = ({ from, to, response }) => {
      if (from !== 0 || wrong-- <= 0) return false;
      response.writeHead(206, { 'content-length': to - from + 1 }).end(randomBytes(to - from + 1));
      return true;
    };
    const cache = await open();
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);

    const bad = { ...store.put(randomBytes(100)) };
    store.blobs.set(bad.sha256, randomBytes(100));
    await expect(cache.pull(bad, never)).rejects.toMatchObject({
      code: 'integrity',
      message: expect.stringContaining(bad.sha256),
    });
    expect(store.gets.filter(({ hash }) => hash === bad.sha256)).toHaveLength(3);
    expect(await partial()).toEqual([]);
    expect(await cache.store.missing([bad])).toEqual(new Set([bad.sha256]));
  });

  it.each([
    ['longer', 150],
    ['shorter', 50],
  ])('refuses an object that is %s than its manifest says', async (_, sizeBytes) => {
    const bytes = randomBytes(100);
    const blob = { sha256: sha256Hex(bytes), size: 100 };
    store.blobs.set(blob.sha256, randomBytes(sizeBytes));
    const cache = await open({ tries: 3 });
    await expect(cache.pull(blob, never)).rejects.toMatchObject({
      code: expect.stringMatching(/integrity|unavailable/),
    });
    expect(await readdir(join(folder, 'blobs'))).toEqual([]);
  });

  it('takes a store that knows no ranges', async () => {
    const bytes = randomBytes(4_500);
    const blob = store.put(bytes);
    store.intercept = ({ response }) => {
      response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
      return true;
    };
    const cache = await open();
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
  });

  it('goes on with what an ended process had pulled, after hashing it again', async () => {
    const bytes = randomBytes(5_000);
    const blob = store.put(bytes);
    await open();
    await writeFile(join(folder, 'partial', blob.sha256), bytes.subarray(0, 3_200));
    const cache = await open();
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
    expect(Math.min(...store.gets.map(({ from }) => from))).toBe(3_200);
  });

  it.each([
    ['rotten', 3_200],
    ['too long', 6_000],
  ])('starts over when what was left is %s', async (_, sizeBytes) => {
    const bytes = randomBytes(5_000);
    const blob = store.put(bytes);
    await open();
    await writeFile(join(folder, 'partial', blob.sha256), randomBytes(sizeBytes));
    const cache = await open();
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
  });

  it('sees a file that was changed, cut or replaced, and never takes it for the blob', async () => {
    const bytes = randomBytes(1_500);
    const blob = store.put(bytes);
    const cache = await open();
    const path = cache.store.pathOf(blob.sha256);
    for (const harm of [
      () => writeFile(path, randomBytes(1_500)),
      () => truncate(path, 7),
      () => rm(path),
      async () => {
        await rm(path);
        await writeFile(path, randomBytes(1_500));
      },
    ]) {
      await cache.pull(blob, never);
      expect(await cache.store.missing([blob])).toEqual(new Set());
      await harm();
      expect(await cache.store.missing([blob])).toEqual(new Set([blob.sha256]));
      expect(await cache.store.verify(blob)).toBe(false);
    }
    await cache.pull(blob, never);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
  });

  it('hashes once after a start what an earlier process left, and trusts it then', async () => {
    const bytes = randomBytes(1_500);
    const blob = store.put(bytes);
    await (await open()).pull(blob, never);
    const cache = await open();
    expect(cache.store.provenFile(blob.sha256)).toBeUndefined();
    expect(await cache.store.verify(blob)).toBe(true);
    expect(cache.store.provenFile(blob.sha256)).toBeDefined();
    await utimes(cache.store.pathOf(blob.sha256), new Date(), new Date(0));
    expect(await cache.store.missing([blob])).toEqual(new Set([blob.sha256]));
    await cache.pull(blob, never);
    expect(store.gets).toHaveLength(2);
  });

  it('stops a fetch when the last who waits gives up, and only then', async () => {
    const bytes = randomBytes(100);
    const blob = store.put(bytes);
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    let gone = 0;
    store.intercept = ({ request, response }) => {
      request.socket.on('close', () => {
        gone += 1;
      });
      void held.then(() => response.writeHead(200, { 'content-length': 100 }).end(bytes));
      return true;
    };
    const cache = await open({ headersTimeoutMs: 5_000 });
    const [first, second] = [new AbortController(), new AbortController()];
    const both = [cache.pull(blob, first.signal), cache.pull(blob, second.signal)];
    await vi.waitFor(() => expect(store.gets).toHaveLength(1), { interval: 2 });
    first.abort();
    second.abort();
    await expect(Promise.all(both)).rejects.toMatchObject({ code: 'cancelled' });
    await Promise.allSettled(both);
    const again = [new AbortController(), new AbortController()];
    const more = again.map(({ signal }) => cache.pull(blob, signal));
    again[0]!.abort();
    go();
    await Promise.all(more);
    expect(await contentOf(cache, blob.sha256)).toEqual(bytes);
    await vi.waitFor(() => expect(gone).toBe(1), { interval: 2 });
  });

  it('lets go of what nobody needs, least recently needed first, and never of what is desired', async () => {
    const blobs = Array.from({ length: 4 }, () => store.put(randomBytes(1_000)));
    const hashes = blobs.map(({ sha256 }) => sha256);
    let now = 1_000_000;
    const cache = await open({}, { keepBytes: 2_000, now: () => (now += 1_000) });
    for (const blob of blobs) await cache.pull(blob, never);
    await cache.need(new Set(hashes));
    await cache.evict();
    expect(cache.sizeBytes).toBe(4_000);
    await cache.need(new Set([hashes[0]!, hashes[1]!, hashes[3]!]));
    await cache.need(new Set([hashes[0]!, hashes[3]!]));
    await cache.need(new Set([hashes[3]!]));
    await cache.evict();
    // 0, 1 and 2 are idle, 2 for the longest time; two of them fit.
    expect((await cache.store.list()).map(({ hash }) => hash).sort()).toEqual(
      [hashes[0]!, hashes[1]!, hashes[3]!].sort(),
    );
    // Another process knows the order from the disk.
    const later = await open({}, { keepBytes: 1_000 });
    await later.need(new Set([hashes[3]!]));
    await later.evict();
    expect((await later.store.list()).map(({ hash }) => hash).sort()).toEqual([hashes[0]!, hashes[3]!].sort());
  });

  it('makes room for what is needed, and says no_space when there is none to make', async () => {
    const idle = store.put(randomBytes(1_000));
    const wanted = store.put(randomBytes(1_200));
    let capacity = 2_000;
    let cache: BlobCache | undefined;
    const freeBytes = async () =>
      capacity - (await cache!.store.list()).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    cache = await open({}, { freeBytes });
    await cache.pull(idle, never);
    await cache.need(new Set([idle.sha256]));
    await expect(cache.pull(wanted, never)).rejects.toMatchObject({
      code: 'no_space',
      message: expect.stringContaining(wanted.sha256),
    });
    expect(await cache.store.missing([idle])).toEqual(new Set());
    await cache.need(new Set([wanted.sha256]));
    await cache.pull(wanted, never);
    expect(await cache.store.missing([idle])).toEqual(new Set([idle.sha256]));
    capacity = 0;
    await expect(cache.pull(store.put(randomBytes(1)), never)).rejects.toMatchObject({ code: 'no_space' });
  });

  it('forgets downloads that were begun and are not wanted any more', async () => {
    const cache = await open();
    const [kept, left] = [store.put(randomBytes(10)), store.put(randomBytes(11))];
    for (const { sha256 } of [kept, left]) await writeFile(join(folder, 'partial', sha256), 'x');
    await cache.need(new Set([kept.sha256]));
    await cache.evict();
    expect(await partial()).toEqual([kept.sha256]);
  });
});
