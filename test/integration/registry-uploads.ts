import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  fileOf,
  newBytes,
  publisher,
  send,
  startTestRegistry,
  type TestRegistry,
  type TestRegistryOptions,
} from '../support/registry.ts';

const mebibyte = 1024 ** 2;
const day = 24 * 3_600_000;

/** Uploads that go wrong in every way, on any store. */
export function uploadSuite(name: string, open: () => Promise<TestRegistryOptions>): void {
  describe(`uploads to ${name}`, () => {
    let test: TestRegistry;
    beforeAll(async () => {
      test = await startTestRegistry(await open());
    });
    afterAll(() => test?.close());

    const big = newBytes(40 * mebibyte); // three parts: 16, 16 and 8 MiB
    const begin = (model: string, files: Record<string, Uint8Array>) =>
      test.registry.createVersion(publisher, 'up', model, {
        files: Object.entries(files).map(([path, bytes]) => fileOf(path, bytes)),
      });
    const complete = (model: string) => test.registry.completeVersion(publisher, 'up', model, 1);
    const resume = (model: string) => test.registry.resumeUpload(publisher, 'up', model, 1);
    const stateOf = async (model: string) => (await test.registry.getVersion('up', model, 1)).state;
    const download = async (model: string, path: string) => {
      const files = await test.registry.downloads('up', model, 1);
      const answer = await fetch(files.find((file) => file.path === path)!.url);
      return Buffer.from(await answer.arrayBuffer());
    };

    it('cut off between files: what arrived is left out, and complete names what did not', async () => {
      const files = { a: newBytes(), 'd/b': newBytes(), c: newBytes(0) };
      const { missing } = await begin('files', files);
      expect(missing.map((blob) => blob.method)).toEqual(['put', 'put', 'put']);
      const hashes = Object.fromEntries(
        Object.entries(files).map(([path, bytes]) => [fileOf(path, bytes).sha256, path]),
      );
      const named = (path: 'a' | 'd/b' | 'c') => missing.find((blob) => hashes[blob.sha256] === path)!;
      expect(await send(named('a'), files.a)).toEqual([200]);
      const before = await test.database.query('select state from versions');
      await expect(complete('files')).rejects.toThrow(/file c: its bytes were not uploaded yet; file d\/b: its bytes/);
      await expect(complete('files')).rejects.toMatchObject({ code: 'invalid' });
      expect(await test.database.query('select state from versions')).toEqual(before);
      const rest = await resume('files');
      expect(rest.missing.map((blob) => hashes[blob.sha256]).sort()).toEqual(['c', 'd/b']);
      for (const blob of rest.missing) await send(blob, files[hashes[blob.sha256] as 'c']);
      expect((await resume('files')).missing).toEqual([]);
      expect(await complete('files')).toMatchObject({ state: 'draft' });
      expect(await download('files', 'c')).toHaveLength(0);
    });

    it('cut off inside a big file: only the parts that did not arrive are sent again', async () => {
      const { missing } = await begin('parts', { big, small: newBytes() });
      const blob = missing.find((upload) => upload.method === 'multipart')!;
      expect(blob).toMatchObject({ partSize: 16 * mebibyte, partCount: 3, partsDone: [] });
      expect(await send(blob, big, [2])).toEqual([200]);
      await expect(complete('parts')).rejects.toThrow('file big: 2 of its 3 parts are missing');
      const again = (await resume('parts')).missing.find((upload) => upload.method === 'multipart')!;
      expect(again).toMatchObject({ uploadId: blob.uploadId, partsDone: [2] });
      expect(again.parts?.map((part) => part.partNumber)).toEqual([1, 3]);
      const { missing: rest } = await test.registry.createVersion(publisher, 'up', 'parts', {
        files: (await test.registry.getVersion('up', 'parts', 1)).files!,
      }); // the same command typed again goes on too
      expect(rest.find((upload) => upload.method === 'multipart')?.partsDone).toEqual([2]);
      expect(await send(again, big)).toEqual([200, 200]);
      await expect(complete('parts')).rejects.toThrow('file small: its bytes were not uploaded');
    });

    it('parts of two senders at once make one object', async () => {
      const bytes = newBytes(33 * mebibyte);
      const [one, two] = await Promise.all([begin('both', { bytes }), begin('both', { bytes })]);
      expect(one.missing[0]!.uploadId).toBe(two.missing[0]!.uploadId);
      const [first, second] = await Promise.all([send(one.missing[0]!, bytes), send(two.missing[0]!, bytes)]);
      expect([...first, ...second].every((status) => status === 200)).toBe(true);
      const done = await Promise.all([complete('both'), complete('both'), complete('both')]);
      expect(done.map((version) => version.state)).toEqual(['draft', 'draft', 'draft']);
      const rows = (await test.changes()).filter(
        (row) => row.subject === 'up/both/1' && row.action === 'version.complete',
      );
      expect(rows).toHaveLength(1);
      expect((await download('both', 'bytes')).equals(bytes)).toBe(true);
    });

    it('a small file of other bytes never gets into the store', async () => {
      const bytes = newBytes();
      const { missing } = await begin('wrong-small', { 'model.plan': bytes });
      expect(await send(missing[0]!, newBytes())).toEqual([400]);
      await expect(complete('wrong-small')).rejects.toThrow('file model.plan: its bytes were not uploaded yet');
      expect(await stateOf('wrong-small')).toBe('uploading');
      expect(await send(missing[0]!, bytes)).toEqual([200]);
      expect(await complete('wrong-small')).toMatchObject({ state: 'draft' });
    });

    it('a big file of other bytes is found out, named, and can be sent again', async () => {
      const bytes = newBytes(33 * mebibyte);
      const other = Buffer.from(bytes);
      other[20 * mebibyte] = (other[20 * mebibyte] as number) ^ 1;
      const { missing } = await begin('wrong-big', { 'w/model.onnx': bytes });
      await send(missing[0]!, other);
      const failed = complete('wrong-big');
      await expect(failed).rejects.toMatchObject({
        code: 'integrity',
        details: { errors: [{ path: 'w/model.onnx' }] },
      });
      await expect(failed).rejects.toThrow(
        /version 1 of model up\/wrong-big .* file w\/model.onnx: its bytes have SHA-256/,
      );
      expect(await stateOf('wrong-big')).toBe('uploading');
      expect(await test.registry.blobUrls([missing[0]!.sha256])).toEqual([]);
      const again = (await resume('wrong-big')).missing[0]!;
      expect(again).toMatchObject({ partsDone: [] });
      expect(again.uploadId).not.toBe(missing[0]!.uploadId);
      await send(again, bytes);
      expect(await complete('wrong-big')).toMatchObject({ state: 'draft' });
      expect((await download('wrong-big', 'w/model.onnx')).equals(bytes)).toBe(true);
    });

    describe('a process that died between two steps', () => {
      it('after the claim: the number is nobody’s, the next one is given', async () => {
        await test.store.putIfAbsent('versions/up/died-claim/1', Buffer.from('{}'));
        expect((await begin('died-claim', { a: newBytes() })).version.number).toBe(2);
      });

      it('after the store began an upload: it is begun again, and the sweep takes the lost one', async () => {
        const bytes = newBytes(33 * mebibyte);
        const { missing } = await begin('died-start', { bytes });
        const [row] = await test.database.query('select object_key, multipart_id from blobs where id = $1', [
          missing[0]!.uploadId,
        ]);
        await test.database.query('update blobs set multipart_id = null where id = $1', [missing[0]!.uploadId]);
        const again = (await resume('died-start')).missing[0]!;
        await send(again, bytes);
        expect(await complete('died-start')).toMatchObject({ state: 'draft' });
        const lost = { key: row!['object_key'], uploadId: row!['multipart_id'] };
        expect(await test.store.multipart.parts(lost)).toEqual([]);
        const swept = await test.sweep.sweepUploads(new Date(Date.now() + 2 * 3_600_000));
        expect(swept.uploads).toBeGreaterThan(0);
        expect(await test.store.multipart.parts(lost)).toBeUndefined();
      });

      it('after the parts were put together: it is hashed then', async () => {
        const bytes = newBytes(33 * mebibyte);
        const { missing } = await begin('died-assemble', { bytes });
        await send(missing[0]!, bytes);
        const [row] = await test.database.query('select object_key, multipart_id from blobs where id = $1', [
          missing[0]!.uploadId,
        ]);
        const ref = { key: row!['object_key'], uploadId: row!['multipart_id'] };
        await test.store.multipart.complete(ref, (await test.store.multipart.parts(ref))!);
        expect((await resume('died-assemble')).missing).toEqual([]);
        expect(await complete('died-assemble')).toMatchObject({ state: 'draft' });
      });

      it('after the upload was aborted behind our back: it is begun again', async () => {
        const bytes = newBytes(33 * mebibyte);
        const { missing } = await begin('died-abort', { bytes });
        const [row] = await test.database.query('select object_key, multipart_id from blobs where id = $1', [
          missing[0]!.uploadId,
        ]);
        await test.store.multipart.abort({ key: row!['object_key'], uploadId: row!['multipart_id'] });
        const again = (await resume('died-abort')).missing[0]!;
        await send(again, bytes);
        expect(await complete('died-abort')).toMatchObject({ state: 'draft' });
      });

      it('after one blob was verified: the rest goes on from there', async () => {
        const files = { a: newBytes(), b: newBytes() };
        const { missing } = await begin('died-verify', files);
        for (const blob of missing) await send(blob, fileOf('a', files.a).sha256 === blob.sha256 ? files.a : files.b);
        await test.database.query(`update blobs set state = 'verified' where id = $1`, [missing[0]!.uploadId]);
        expect((await resume('died-verify')).missing).toEqual([]);
        expect(await complete('died-verify')).toMatchObject({ state: 'draft' });
      });

      it('after a verified object was lost (an older database was restored): complete says so and takes it again', async () => {
        const bytes = newBytes();
        const { missing } = await begin('died-lost', { a: bytes });
        const id = missing[0]!.uploadId;
        await test.database.query(`update blobs set state = 'verified' where id = $1`, [id]);
        await expect(complete('died-lost')).rejects.toThrow('file a: its bytes were not uploaded yet');
        const again = (await resume('died-lost')).missing[0]!;
        await send(again, bytes);
        expect(await complete('died-lost')).toMatchObject({ state: 'draft' });
      });
    });

    describe('numbers after the database was restored', () => {
      it('are never given twice, however far back it went', async () => {
        for (let n = 1; n <= 9; n += 1) await begin('restored', { a: newBytes() });
        await test.database.query(
          `delete from versions where model_id = (select id from models where name = 'restored') and number > 2`,
        );
        await test.database.query(`update models set next_number = 3 where name = 'restored'`);
        expect((await begin('restored', { a: newBytes() })).version.number).toBe(10);
        expect((await begin('restored', { a: newBytes() })).version.number).toBe(11);
        await test.database.query(
          `delete from versions where model_id = (select id from models where name = 'restored')`,
        );
        await test.database.query(`delete from models where name = 'restored'`);
        expect((await begin('restored', { a: newBytes() })).version.number).toBe(12);
      });
    });

    describe('the sweep', () => {
      it('leaves alone what is under way, referred to or young', async () => {
        const small = newBytes();
        const { missing } = await begin('sweep-live', { large: newBytes(33 * mebibyte), small });
        await send(missing.find((blob) => blob.method === 'put')!, small);
        await test.sweep.sweepUploads(new Date(Date.now() + day - 60_000));
        expect(await stateOf('sweep-live')).toBe('uploading');
        expect((await resume('sweep-live')).missing).toHaveLength(1);
        await test.sweep.sweepUploads(new Date(Date.now() + day + 30 * 60_000)); // within the hour of grace
        expect(await stateOf('sweep-live')).toBe('uploading');
      });

      it('gives up what nobody finished: rows, objects and parts; numbers and complete versions stay', async () => {
        const shared = newBytes();
        const { missing } = await begin('sweep-kept', { shared });
        await send(missing[0]!, shared);
        await complete('sweep-kept');
        const own = newBytes();
        const dead = await begin('sweep-dead', { shared, own, large: newBytes(33 * mebibyte) });
        expect(dead.missing).toHaveLength(2);
        await send(dead.missing.find((blob) => blob.method === 'put')!, own);
        const keys = await test.database.query(`select object_key, multipart_id from blobs where id = any($1)`, [
          dead.missing.map((blob) => blob.uploadId),
        ]);
        const later = new Date(Date.now() + day + 2 * 3_600_000);
        const swept = await test.sweep.sweepUploads(later);
        expect(swept.versions).toBeGreaterThanOrEqual(1);
        expect(swept.blobs).toBeGreaterThanOrEqual(2);
        await expect(test.registry.getVersion('up', 'sweep-dead', 1)).rejects.toMatchObject({ code: 'not_found' });
        for (const { object_key: key, multipart_id: uploadId } of keys) {
          expect(await test.store.head(key)).toBeUndefined();
          if (uploadId) expect(await test.store.multipart.parts({ key, uploadId })).toBeUndefined();
        }
        expect((await test.changes()).at(-1)).toMatchObject({ actor: 'system', action: 'version.abandon' });
        expect(await download('sweep-kept', 'shared')).toEqual(shared);
        expect((await begin('sweep-dead', { own })).version.number).toBe(2);
        expect(await test.sweep.sweepUploads(new Date())).toEqual({ versions: 0, modules: 0, blobs: 0, uploads: 0 });
      });

      it('finishes what a sweep that died began', async () => {
        const bytes = newBytes();
        const { missing } = await begin('sweep-died', { bytes });
        await send(missing[0]!, bytes);
        const id = missing[0]!.uploadId;
        await test.database.query(
          `delete from versions where id = (select version_id from version_files where blob_id = $1)`,
          [id],
        );
        await test.database.query(`update blobs set state = 'deleting' where id = $1`, [id]);
        expect((await begin('sweep-next', { bytes })).missing).toHaveLength(1); // marked counts as missing
        const [row] = await test.database.query('select object_key from blobs where id = $1', [id]);
        await test.sweep.sweepUploads(new Date(Date.now() + 2 * 3_600_000));
        expect(await test.database.query('select 1 from blobs where id = $1', [id])).toEqual([]);
        expect(await test.store.head(row!['object_key'])).toBeUndefined();
      });
    });
  });
}
