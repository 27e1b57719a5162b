import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { blobKey, versionClaimKey } from '@perch/contracts';
import type { ArtifactStore, KnownBytes } from '@perch/registry';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestStore } from '../support/object-store.ts';

const mebibyte = 1024 ** 2;
const soon = () => new Date(Date.now() + 60_000);
const known = (bytes: Uint8Array): KnownBytes => ({
  sha256: createHash('sha256').update(bytes).digest('hex'),
  sizeBytes: bytes.length,
});
const newKey = (bytes: Uint8Array = randomBytes(8)) => blobKey(known(bytes).sha256, randomUUID());

async function allOf(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
async function put(url: string, bytes: Uint8Array, headers: Record<string, string> = {}): Promise<number> {
  const answer = await fetch(url, { method: 'PUT', body: Buffer.from(bytes), headers });
  await answer.arrayBuffer();
  return answer.status;
}
const flipped = (text: string): string => `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`;
/** The URL with one digit of its signature changed. */
const tampered = (url: string) => url.replace(/(signature=)([0-9a-f]+)/i, (_all, name, value) => name + flipped(value));

/** What every artifact store must do, judged by status and by what lies there afterwards, never by error names. */
export function artifactStoreContract(name: string, open: () => Promise<TestStore>): void {
  describe(`artifact store: ${name}`, () => {
    let test: TestStore;
    let store: ArtifactStore;
    beforeAll(async () => {
      test = await open();
      store = test.store;
    });
    afterAll(() => test?.close());
    const stored = async (bytes: Uint8Array) => {
      const key = newKey(bytes);
      await store.put(key, Readable.from([Buffer.from(bytes)]), known(bytes));
      return key;
    };

    describe('listing', () => {
      it('names what lies below a prefix with size and age, and nothing else', async () => {
        const bytes = randomBytes(100);
        const keys = [await stored(bytes), await stored(randomBytes(5))];
        const other = `probes/${randomUUID()}`;
        await store.putIfAbsent(other, randomBytes(3));
        const found = new Map<string, { sizeBytes: number; modifiedAt: Date }>();
        for await (const object of store.list('blobs')) found.set(object.key, object);
        expect(keys.map((key) => found.get(key)?.sizeBytes)).toEqual([100, 5]);
        expect(Math.abs(Date.now() - found.get(keys[0]!)!.modifiedAt.getTime())).toBeLessThan(60_000);
        expect(found.has(other)).toBe(false);
        await store.delete(keys[0]!);
        const after: string[] = [];
        for await (const { key } of store.list(keys[0]!.split('/').slice(0, 2).join('/'))) after.push(key);
        expect(after).toEqual([]);
        await store.delete(other);
      });
      it('is empty where nothing was ever put', async () => {
        for await (const { key } of store.list('nowhere')) throw new Error(key);
      });
    });

    describe('a signed PUT', () => {
      it('stores the bytes it was signed for, and the store knows their hash', async () => {
        const bytes = randomBytes(1_000);
        const key = newKey(bytes);
        const { url, headers } = await store.signPut(key, known(bytes), soon());
        expect(await put(url, bytes, headers)).toBe(200);
        expect(await store.head(key)).toEqual(known(bytes));
        expect(await put(url, bytes, headers)).toBe(200); // sent again after a lost answer
        expect(await allOf(await store.read(key))).toEqual(bytes);
      });

      it('takes an empty file', async () => {
        const key = newKey();
        const { url, headers } = await store.signPut(key, known(Buffer.alloc(0)), soon());
        expect(await put(url, Buffer.alloc(0), headers)).toBe(200);
        expect(await store.head(key)).toEqual(known(Buffer.alloc(0)));
      });

      const signed = randomBytes(1_000);
      const wrong = Buffer.from(signed);
      wrong[500] = (wrong[500] as number) ^ 1;
      it.each([
        ['other bytes of the same length', wrong, {}, [400]],
        ['fewer bytes', signed.subarray(1), {}, [400, 403]],
        ['more bytes', Buffer.concat([signed, signed]), {}, [400, 403]],
        ['no checksum header', signed, { 'x-amz-checksum-sha256': '' }, [400, 403]],
        ['another checksum than the signed one', wrong, { 'x-amz-checksum-sha256': sumOf(wrong) }, [400, 403]],
      ])('refuses %s and leaves nothing behind', async (_case, body, other, statuses) => {
        const key = newKey(signed);
        const { url, headers } = await store.signPut(key, known(signed), soon());
        const sent = Object.fromEntries(Object.entries({ ...headers, ...other }).filter(([, value]) => value));
        expect(statuses).toContain(await put(url, body, sent as Record<string, string>));
        expect(await store.head(key)).toBeUndefined();
      });

      it('is refused when tampered with, when it is over, and for another key or method', async () => {
        const bytes = randomBytes(10);
        const key = newKey(bytes);
        const { url, headers } = await store.signPut(key, known(bytes), soon());
        expect(await put(tampered(url), bytes, headers)).toBe(403);
        expect(await put(url.replace(key, newKey(bytes)), bytes, headers)).toBe(403);
        expect((await fetch(url)).status).toBe(403);
        const short = await store.signPut(key, known(bytes), new Date(Date.now() + 1_000));
        await expect.poll(() => put(short.url, bytes, headers), { timeout: 10_000, interval: 300 }).toBe(403);
      });

      it('cut off in the middle leaves nothing behind', async () => {
        const bytes = randomBytes(2 * mebibyte);
        const key = newKey(bytes);
        const { url, headers } = await store.signPut(key, known(bytes), soon());
        const half = new ReadableStream({
          pull(controller) {
            controller.enqueue(bytes.subarray(0, mebibyte));
            controller.error(new Error('the sender dies'));
          },
        });
        const length = { 'content-length': String(bytes.length) };
        const cut = fetch(url, {
          method: 'PUT',
          body: half,
          headers: { ...headers, ...length },
          duplex: 'half',
        } as never);
        await expect(cut.then((answer) => expect(answer.status).toBeGreaterThanOrEqual(400))).rejects.toBeDefined();
        expect(await store.head(key)).toBeUndefined();
        expect(await put(url, bytes, headers)).toBe(200);
      });
    });

    describe('a signed GET', () => {
      it('gives the bytes, or a range of them', async () => {
        const bytes = randomBytes(1_000);
        const url = await store.signGet(await stored(bytes), soon());
        const get = async (range?: string) => {
          const answer = await fetch(url, range ? { headers: { range } } : {});
          return { status: answer.status, body: Buffer.from(await answer.arrayBuffer()) };
        };
        expect(await get()).toEqual({ status: 200, body: bytes });
        expect(await get('bytes=0-0')).toEqual({ status: 206, body: bytes.subarray(0, 1) });
        expect(await get('bytes=900-')).toEqual({ status: 206, body: bytes.subarray(900) });
        expect(await get('bytes=990-2000')).toEqual({ status: 206, body: bytes.subarray(990) });
        expect(await get('bytes=-10')).toEqual({ status: 206, body: bytes.subarray(990) });
        expect((await get('bytes=1000-')).status).toBe(416);
      });

      it('is refused when tampered with or over; what is not there is 404', async () => {
        const key = await stored(randomBytes(10));
        const url = await store.signGet(key, soon());
        expect((await fetch(tampered(url))).status).toBe(403);
        expect((await fetch(await store.signGet(newKey(), soon()))).status).toBe(404);
        const short = await store.signGet(key, new Date(Date.now() + 1_000));
        await expect.poll(async () => (await fetch(short)).status, { timeout: 10_000, interval: 300 }).toBe(403);
      });
    });

    describe('our own calls', () => {
      it('putIfAbsent writes once, and of twenty at once exactly one wins', async () => {
        const key = versionClaimKey('nlp', `m${randomUUID().slice(0, 8)}`, 7);
        const tries = Array.from({ length: 20 }, (_, at) => Buffer.from(`try ${at}`));
        const won = await Promise.all(tries.map((body) => store.putIfAbsent(key, body)));
        expect(won.filter(Boolean)).toHaveLength(1);
        expect(await allOf(await store.read(key))).toEqual(tries[won.indexOf(true)]);
        expect(await store.putIfAbsent(key, Buffer.from('late'))).toBe(false);
      });

      it('put refuses bytes that are not those', async () => {
        const bytes = randomBytes(100);
        const key = newKey(bytes);
        const other = randomBytes(100);
        await expect(store.put(key, Readable.from([other]), known(bytes))).rejects.toMatchObject({ code: 'integrity' });
        expect(await store.head(key)).toBeUndefined();
      });

      it('reads ranges, and names what is not there', async () => {
        const bytes = randomBytes(500);
        const key = await stored(bytes);
        expect(await allOf(await store.read(key, { first: 10, last: 19 }))).toEqual(bytes.subarray(10, 20));
        expect(await allOf(await store.read(key, { first: 490, last: 900 }))).toEqual(bytes.subarray(490));
        const gone = newKey();
        expect(await store.head(gone)).toBeUndefined();
        await expect(store.read(gone)).rejects.toMatchObject({ code: 'not_found' });
        await expect(store.read(gone)).rejects.toThrow(gone);
      });

      it('deletes, also what is not there', async () => {
        const key = await stored(randomBytes(10));
        await store.delete(key);
        await store.delete(key);
        expect(await store.head(key)).toBeUndefined();
      });
    });

    describe('an upload in parts', () => {
      const bytes = randomBytes(11 * mebibyte);
      const partSize = 5 * mebibyte;
      const part = (n: number) => bytes.subarray((n - 1) * partSize, n * partSize);

      it('is resumed by what arrived, and becomes one object whose hash the store does not claim to know', async () => {
        const key = newKey(bytes);
        const upload = { key, uploadId: await store.multipart.start(key) };
        expect(await store.multipart.parts(upload)).toEqual([]);
        const send = async (n: number) =>
          put(await store.multipart.signPart(upload, n, part(n).length, soon()), part(n));
        expect(await Promise.all([send(3), send(1)])).toEqual([200, 200]);
        const half = await store.multipart.parts(upload);
        expect(half?.map(({ partNumber, sizeBytes }) => [partNumber, sizeBytes])).toEqual([
          [1, partSize],
          [3, mebibyte],
        ]);
        expect(await store.head(key)).toBeUndefined();
        expect(await send(2)).toBe(200);
        expect(await send(2)).toBe(200); // a part sent again replaces itself
        await store.multipart.complete(upload, (await store.multipart.parts(upload))!);
        expect((await allOf(await store.read(key))).equals(bytes)).toBe(true);
        expect(await store.head(key)).toEqual({ sizeBytes: bytes.length, sha256: undefined });
        expect(await store.multipart.parts(upload)).toBeUndefined();
      });

      it('refuses a part of another size, of another number, or after the abort', async () => {
        const small = bytes.subarray(0, 1_000); // big ones may end in a reset connection before the status is read
        const key = newKey(bytes);
        const upload = { key, uploadId: await store.multipart.start(key) };
        const url = await store.multipart.signPart(upload, 1, small.length, soon());
        expect([400, 403]).toContain(await put(url, small.subarray(1)));
        expect(await put(tampered(url), small)).toBe(403);
        expect(await put(url.replace(/(part(Number)?=)1/i, '$12'), small)).toBe(403);
        expect(await store.multipart.parts(upload)).toEqual([]);
        await store.multipart.abort(upload);
        await store.multipart.abort(upload);
        expect(await put(url, small)).toBe(404);
        expect(await store.multipart.parts(upload)).toBeUndefined();
        expect(await store.head(key)).toBeUndefined();
      });

      it('cannot be completed with a part that is not there', async () => {
        const key = newKey(bytes);
        const upload = { key, uploadId: await store.multipart.start(key) };
        expect(await put(await store.multipart.signPart(upload, 1, partSize, soon()), part(1))).toBe(200);
        const [first] = (await store.multipart.parts(upload))!;
        const other = { ...first!, etag: flipped(first!.etag.replace(/"$/, '')) };
        await expect(store.multipart.complete(upload, [other])).rejects.toBeDefined();
        await expect(store.multipart.complete(upload, [first!, { ...first!, partNumber: 2 }])).rejects.toBeDefined();
        expect(await store.head(key)).toBeUndefined();
      });

      it('is listed with its age until it is over', async () => {
        const keys = [newKey(), newKey(), newKey()];
        const uploads = await Promise.all(
          keys.map(async (key) => ({ key, uploadId: await store.multipart.start(key) })),
        );
        const listed = async () => {
          const found: string[] = [];
          for await (const upload of store.multipart.list()) {
            expect(Math.abs(upload.startedAt.getTime() - Date.now())).toBeLessThan(120_000);
            found.push(`${upload.key} ${upload.uploadId}`);
          }
          return found;
        };
        const names = uploads.map((upload) => `${upload.key} ${upload.uploadId}`);
        expect(await listed()).toEqual(expect.arrayContaining(names));
        await store.multipart.abort(uploads[1]!);
        expect(await listed()).not.toContain(names[1]);
      });
    });
  });
}

const sumOf = (bytes: Uint8Array) => Buffer.from(known(bytes).sha256, 'hex').toString('base64');
