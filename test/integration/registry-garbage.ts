import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError, blobKey, type Garbage, sha256Hex } from '@perch/contracts';
import { DeletionService, GarbageService, type UsersOf } from '@perch/registry';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  fileOf,
  newBytes,
  publisher,
  send,
  startTestRegistry,
  type TestRegistry,
  type TestRegistryOptions,
  upload,
} from '../support/registry.ts';

const hour = 3_600_000;
const nobody: UsersOf = async () => [];
const nothingNeeded = async () => new Set<string>();

/** Deleting models and collecting what nobody needs, on any store. */
export function garbageSuite(name: string, open: () => Promise<TestRegistryOptions>): void {
  describe(`garbage in ${name}`, () => {
    let test: TestRegistry;
    beforeAll(async () => {
      test = await startTestRegistry(await open());
    });
    afterAll(() => test?.close());

    const remove = (model: string, number: number | null, usersOf: UsersOf = nobody) => {
      const [project, modelName] = model.split('/') as [string, string];
      return test.get(DeletionService).delete(publisher, project, modelName, number, usersOf);
    };
    /** Time passes for all that is there: everything becomes as old as the test wants it. */
    const age = async () => {
      await test.database.query(
        `update versions set deleted_at = deleted_at - interval '2 days' where deleted_at is not null`,
      );
      await test.database.query(`update blobs set created_at = created_at - interval '2 days'`);
    };
    const collect = (options: Partial<Parameters<GarbageService['collect']>[0]> = {}) =>
      test.get(GarbageService).collect({
        dryRun: false,
        before: new Date(Date.now() - 24 * hour),
        neededHashes: nothingNeeded,
        trustRows: true,
        ...options,
      });
    const kind = (found: Garbage[], wanted: string) => found.find((one) => one.kind === wanted)!;
    const objectOf = async (hash: string) => {
      const [blob] = await test.database.query('select object_key from blobs where sha256 = $1', [hash]);
      return blob && test.store.head(blob['object_key']);
    };

    it('a deleted version is gone for everybody, and its number is never given again', async () => {
      const bytes = newBytes();
      await upload(test, 'gc/a', { m: bytes }, { tags: ['prod'] });
      const second = await upload(test, 'gc/a', { m: newBytes() });
      expect(await remove('gc/a', 1)).toMatchObject({ versions: [1], sizeBytes: 100 });
      await expect(test.registry.getVersion('gc', 'a', 1)).rejects.toMatchObject({ code: 'not_found' });
      await expect(test.registry.publish(publisher, 'gc', 'a', 1)).rejects.toMatchObject({ code: 'not_found' });
      await expect(remove('gc/a', 1)).rejects.toMatchObject({ code: 'not_found' });
      expect((await test.registry.listVersions('gc', 'a')).map(({ number }) => number)).toEqual([second.number]);
      expect((await test.registry.getModel('gc', 'a')).tags).toEqual([]);
      const again = await upload(test, 'gc/a', { m: bytes }); // the same bytes are another version now
      expect(again.number).toBe(3);
      expect((await test.changes()).filter(({ action }) => action === 'version.delete')).toMatchObject([
        { subject: 'gc/a/1', actor: 'ann' },
      ]);
    });

    it('a deleted model is listed no more, and goes on counting when it comes back', async () => {
      await upload(test, 'gc/whole', { m: newBytes() });
      await upload(test, 'gc/whole', { m: newBytes() });
      expect(await remove('gc/whole', null)).toMatchObject({ versions: [1, 2], sizeBytes: 200 });
      await expect(test.registry.getModel('gc', 'whole')).rejects.toMatchObject({ code: 'not_found' });
      await expect(remove('gc/whole', null)).rejects.toMatchObject({ code: 'not_found' });
      const listed = await test.registry.listModels(publisher, { project: 'gc', limit: 100 });
      expect(listed.items.map(({ name: one }) => one)).not.toContain('whole');
      expect((await upload(test, 'gc/whole', { m: newBytes() })).number).toBe(3);
      expect((await test.registry.getModel('gc', 'whole')).versions).toBe(1);
    });

    it('is refused with who uses it, and nothing changes then', async () => {
      await upload(test, 'gc/used', { m: newBytes() });
      const before = await test.everything();
      await expect(remove('gc/used', 1, async () => ['endpoint text/a (version 1)'])).rejects.toThrow(
        'version 1 of model gc/used is in use by endpoint text/a (version 1); take it out of use first',
      );
      await upload(test, 'gc/caller', { 'model.py': newBytes() }, { uses: { helper: 'gc/used' } });
      await expect(remove('gc/used', null)).rejects.toThrow(/in use by version gc\/caller@1 \(its code calls it\)/);
      expect(((await test.everything()) as unknown[][])[1]).toHaveLength((before as unknown[][])[1]!.length + 1);
    });

    it('lists first, then frees what is old enough and nobody needs, and keeps shared bytes', async () => {
      const shared = newBytes();
      const own = newBytes(5_000);
      await upload(test, 'gc/b', { shared, own });
      await upload(test, 'gc/keeps', { shared });
      await remove('gc/b', 1);
      const young = await collect();
      expect(kind(young, 'versions').examples).not.toContain('gc/b@1');
      await age();
      const hash = sha256Hex(own);

      const needed = await collect({
        neededHashes: async (_tx, hashes) => new Set(hashes.filter((one) => one === hash)),
      });
      expect(kind(needed, 'versions').examples).not.toContain('gc/b@1');
      expect(await objectOf(hash)).toBeDefined();

      await upload(test, 'gc/c', { m: newBytes(7_000) });
      await remove('gc/c', 1);
      await age();
      const before = await test.everything();
      const dry = await collect({ dryRun: true });
      expect(kind(dry, 'versions').examples).toEqual(['gc/b@1', 'gc/c@1']);
      expect(kind(dry, 'blobs')).toMatchObject({ count: 2, sizeBytes: 12_000 }); // shared ones are still held
      expect(await test.everything()).toEqual(before);
      const done = await collect();
      expect(done).toEqual(dry);
      await expect(test.registry.getVersion('gc', 'keeps', 1)).resolves.toMatchObject({ state: 'draft' });
      expect(await objectOf(sha256Hex(shared))).toBeDefined();
      expect((await collect()).every(({ count }) => count === 0)).toBe(true);
    });

    it('takes objects without a row when they are old, and none while the rows cannot be trusted', async () => {
      const bytes = newBytes(300);
      const stray = blobKey(sha256Hex(bytes), randomUUID());
      await test.store.put(stray, Readable.from([bytes]), { sha256: sha256Hex(bytes), sizeBytes: 300 });
      const later = { before: new Date(Date.now() + hour) }; // as if a day had gone by
      expect(kind(await collect(), 'objects').count).toBe(0);
      expect(kind(await collect({ ...later, trustRows: false }), 'objects').count).toBe(0);
      expect(kind(await collect({ ...later, dryRun: true }), 'objects')).toMatchObject({ count: 1, examples: [stray] });
      expect(await test.store.head(stray)).toBeDefined();
      expect(kind(await collect(later), 'objects')).toMatchObject({ count: 1, sizeBytes: 300 });
      expect(await test.store.head(stray)).toBeUndefined();
      expect((await upload(test, 'gc/after', { m: newBytes() })).state).toBe('draft');
    });

    it('never takes bytes from an upload that begins, or is completed, at the same time', async () => {
      const bytes = newBytes(2_000);
      const hash = sha256Hex(bytes);
      const outcomes = new Map<string, number>();
      for (let round = 0; round < 10; round += 1) {
        const model = `gc/race-${round}`;
        await upload(test, model, { m: bytes });
        const collecting = remove(model, 1)
          .then(age)
          .then(() => collect());
        const racing = Array.from({ length: 3 }, (_, at) =>
          raceUpload(test, `gc/new-${round}-${at}`, bytes).catch((error: unknown) => {
            if (error instanceof AppError && ['unavailable', 'invalid'].includes(error.code)) return error.code;
            throw error;
          }),
        );
        const [, ...results] = await Promise.all([collecting, ...racing]);
        for (const result of results) outcomes.set(String(result), (outcomes.get(String(result)) ?? 0) + 1);
        for (let at = 0; at < 3; at += 1) await expectWhole(test, `new-${round}-${at}`, bytes);
        // nobody holds the bytes any more before the next round, so that the collection has something to take
        for (let at = 0; at < 3; at += 1) await remove(`gc/new-${round}-${at}`, 1);
      }
      expect(outcomes.get('draft')).toBeGreaterThan(0);
      await age();
      await collect();
      const left = await test.database.query('select count(*)::integer as n from blobs where sha256 = $1', [hash]);
      expect(left[0]!['n']).toBe(0);
      let objects = 0;
      for await (const { key } of test.store.list(`blobs/${hash}`)) objects += key ? 1 : 0;
      expect(objects).toBe(0);
    }, 120_000);
  });
}

/** A client: create, send what is missing, complete; the state of the version. */
async function raceUpload(test: TestRegistry, model: string, bytes: Buffer): Promise<string> {
  const [project, name] = model.split('/') as [string, string];
  const { version, missing } = await test.registry.createVersion(publisher, project, name, {
    files: [fileOf('m', bytes)],
  });
  for (const blob of missing) await send(blob, bytes);
  return (await test.registry.completeVersion(publisher, project, name, version.number)).state;
}

/** Whatever became of the race: resumed, the version is complete, and its bytes are the right ones. */
async function expectWhole(test: TestRegistry, name: string, bytes: Buffer): Promise<void> {
  const { missing, version } = await test.registry.resumeUpload(publisher, 'gc', name, 1);
  for (const blob of missing) await send(blob, bytes);
  if (version.state === 'uploading') await test.registry.completeVersion(publisher, 'gc', name, 1);
  const [file] = await test.registry.downloads('gc', name, 1);
  const answer = await fetch(file!.url);
  expect(answer.status).toBe(200);
  expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
}
