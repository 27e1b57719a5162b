import { bundlePath, type ModuleFacts, moduleClaimKey, type RegisterModule } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { GarbageService, ModuleService } from '@perch/registry';
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

const facts: ModuleFacts = { hooks: ['preprocess', 'postprocess'], body: 'json', task: 'text-classification' };
const nobody = async () => [];

/** Processing modules from upload to the collection of garbage, on any store. */
export function modulesSuite(name: string, open: () => Promise<TestRegistryOptions>): void {
  describe(`processing modules in ${name}`, () => {
    let test: TestRegistry;
    let modules: ModuleService;
    beforeAll(async () => {
      test = await startTestRegistry(await open());
      modules = test.get(ModuleService);
    });
    afterAll(() => test?.close());

    const wishOf = (bundle: Buffer, files: Record<string, Buffer> = {}, more: Partial<ModuleFacts> = {}) =>
      ({
        facts: { ...facts, ...more },
        files: [fileOf(bundlePath, bundle), ...Object.entries(files).map(([path, bytes]) => fileOf(path, bytes))],
      }) satisfies RegisterModule;
    /** What `perch processing add` does. */
    const add = async (module: string, bundle: Buffer, files: Record<string, Buffer> = {}) => {
      const wish = wishOf(bundle, files);
      const { missing } = await modules.upload(publisher, module, wish);
      const bytes = [bundle, ...Object.values(files)];
      for (const blob of missing) await send(blob, bytes.find((one) => fileOf('', one).sha256 === blob.sha256)!);
      return modules.register(publisher, module, wish);
    };
    const objectOf = async (hash: string) => {
      const [blob] = await test.database.query('select object_key from blobs where sha256 = $1', [hash]);
      return blob && test.store.head(blob['object_key']);
    };
    const collect = () =>
      test.get(GarbageService).collect({
        dryRun: false,
        before: new Date(Date.now() - 24 * 3_600_000),
        neededHashes: async () => new Set<string>(),
        trustRows: true,
      });
    const age = async () => {
      await test.database.query(
        `update processing_modules set deleted_at = deleted_at - interval '2 days' where deleted_at is not null`,
      );
      await test.database.query(`update blobs set created_at = created_at - interval '2 days'`);
    };

    it('gets one number after the other, the same one for the same facts and bytes as the newest', async () => {
      const [first, second] = [newBytes(), newBytes()];
      const one = await add('text/sentiment', first, { 'labels.txt': newBytes() });
      expect(one).toMatchObject({ name: 'text/sentiment', number: 1, facts, createdBy: 'ann' });
      expect(one.files.map(({ path }) => path)).toEqual(['labels.txt', bundlePath]);
      const two = await add('text/sentiment', second);
      expect(two.number).toBe(2);
      expect(await add('text/sentiment', second)).toEqual(two);
      expect((await modules.upload(publisher, 'text/sentiment', wishOf(second))).module).toEqual(two);
      expect((await add('text/sentiment', first)).number).toBe(3); // older bytes again roll forward
      const tx = test.get(Transactions).manager;
      expect((await modules.find(tx, 'text/sentiment'))?.number).toBe(3);
      expect(await modules.find(tx, 'text/sentiment', 2)).toEqual(two);
      expect(await modules.find(tx, 'text/sentiment', 9)).toBeNull();
      const seen = (await test.changes()).filter(({ subject }) => subject.startsWith('text/sentiment'));
      expect(seen.map(({ action, subject }) => `${action} ${subject}`)).toEqual([
        'module.register text/sentiment@1',
        'module.register text/sentiment@2',
        'module.register text/sentiment@3',
      ]);
    });

    it('registered at once by several, each bundle gets a number of its own and none twice', async () => {
      const bundles = Array.from({ length: 6 }, () => newBytes());
      const made = await Promise.all([...bundles, ...bundles].map((bundle) => add('race', bundle)));
      const numbers = new Set(made.map(({ number }) => number));
      for (const bundle of bundles)
        expect(made.some(({ files }) => files[0]!.sha256 === fileOf('', bundle).sha256)).toBe(true);
      const all = await modules.numbersOf('race');
      expect(all.map(({ number }) => number)).toEqual(Array.from({ length: all.length }, (_, at) => all.length - at));
      for (const number of numbers) expect(number).toBeLessThanOrEqual(all.length);
    });

    it('is not registered with bytes missing or wrong, and goes on where it stopped', async () => {
      const [bundle, labels] = [newBytes(), newBytes()];
      const wish = wishOf(bundle, { 'labels.txt': labels });
      const { missing } = await modules.upload(publisher, 'cut', wish);
      await send(missing.find(({ sha256 }) => sha256 === fileOf('', bundle).sha256)!, bundle);
      await expect(modules.register(publisher, 'cut', wish)).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('file labels.txt: its bytes were not uploaded yet'),
      });
      const again = await modules.upload(publisher, 'cut', wish);
      expect(again.missing.map(({ sha256 }) => sha256)).toEqual([fileOf('', labels).sha256]);
      await send(again.missing[0]!, labels);
      expect((await modules.register(publisher, 'cut', wish)).number).toBe(1);
    });

    it.each([
      ['no bundle', { ...wishOf(newBytes()), files: [fileOf('other.mjs', newBytes())] }, 'module.mjs'],
      ['a path that leaves its folder', wishOf(newBytes(), { '../x': newBytes() }), '".."'],
      ['a file twice', { facts, files: [fileOf(bundlePath, newBytes()), fileOf(bundlePath, newBytes())] }, 'twice'],
      ['no hook', wishOf(newBytes(), {}, { hooks: [] }), 'hooks'],
      ['a task that is no name', wishOf(newBytes(), {}, { task: 'A B' }), 'task'],
    ])('refuses %s', async (_why, wish, words) => {
      await expect(modules.upload(publisher, 'bad', wish)).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining(words),
      });
      await expect(modules.upload(publisher, 'Bad Name', wish)).rejects.toMatchObject({ code: 'invalid' });
    });

    it('never gets a number that was claimed before the database was set back', async () => {
      for (const number of [1, 2, 3])
        await test.store.putIfAbsent(moduleClaimKey('restored', number), Buffer.from('{}'));
      expect((await add('restored', newBytes())).number).toBe(4);
      expect((await add('restored', newBytes())).number).toBe(5);
    });

    it('cannot be changed or taken away by anybody who writes SQL', async () => {
      await add('stone', newBytes());
      const id = `(select id from processing_modules where name = 'stone')`;
      for (const [statement, constraint] of [
        [`update processing_modules set facts = '{}' where name = 'stone'`, 'module_never_changes'],
        [`update processing_modules set number = 7 where name = 'stone'`, 'module_never_changes'],
        [`delete from processing_modules where name = 'stone'`, 'module_delete_only_uploading'],
        [`delete from processing_module_files where module_id = ${id}`, 'module_files_never_change'],
        [`update processing_module_files set path = 'b' where module_id = ${id}`, 'module_files_never_change'],
        [
          `update blobs set state = 'deleting' where id = (select blob_id from processing_module_files where module_id = ${id})`,
          'blob_in_use',
        ],
      ])
        await expect(test.database.query(statement!)).rejects.toMatchObject({ constraint });
    });

    it('is listed by task and name, the newest of each', async () => {
      await add('ocr/lines', newBytes());
      const names = async (wanted: { task?: string; name?: string }) =>
        (await modules.list({ task: undefined, name: undefined, ...wanted, limit: 50 })).map((one) => one.name);
      expect(await names({ task: 'text-classification', name: 'LINES' })).toEqual(['ocr/lines']);
      expect(await names({ task: 'ocr' })).toEqual([]);
      expect(
        (await modules.list({ task: undefined, name: undefined, limit: 1 }, 'ocr/lines'))[0]!.name > 'ocr/lines',
      ).toBe(true);
      await expect(modules.numbersOf('none')).rejects.toMatchObject({ code: 'not_found' });
    });

    it('is not removed while in use; removed, it is gone and its number is never given again', async () => {
      const bundle = newBytes();
      await add('gone', bundle);
      await expect(modules.remove(publisher, 'gone', 1, async () => ['endpoint a/b'])).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('in use by endpoint a/b'),
      });
      await modules.remove(publisher, 'gone', 1, nobody);
      await expect(modules.get('gone', 1)).rejects.toMatchObject({ code: 'not_found' });
      await expect(modules.remove(publisher, 'gone', 1, nobody)).rejects.toMatchObject({ code: 'not_found' });
      expect((await add('gone', bundle)).number).toBe(2);
    });

    it('keeps its bytes from the collection of garbage until it is deleted', async () => {
      const [kept, shared, lost] = [newBytes(), newBytes(), newBytes()];
      await add('kept', kept, { 'shared.bin': shared });
      await upload(test, 'nlp/holder', { 'model.bin': shared });
      await add('lost', lost);
      await modules.remove(publisher, 'lost', 1, nobody);
      await age();
      const found = await collect();
      expect(found.find(({ kind }) => kind === 'modules')!.examples).toContain('lost@1');
      expect(await objectOf(fileOf('', lost).sha256)).toBeUndefined();
      expect(await objectOf(fileOf('', kept).sha256)).toBeDefined();
      await modules.remove(publisher, 'kept', 1, nobody);
      await age();
      await collect();
      expect(await objectOf(fileOf('', kept).sha256)).toBeUndefined();
      expect(await objectOf(fileOf('', shared).sha256)).toBeDefined(); // the version has it still
    });

    it('an upload given up leaves nothing', async () => {
      const bundle = newBytes();
      await modules.upload(publisher, 'given-up', wishOf(bundle));
      await test.database.query(
        `update processing_modules set upload_expires_at = now() - interval '2 days' where name = 'given-up'`,
      );
      expect((await test.sweep.sweepUploads(new Date())).modules).toBe(1);
      await test.sweep.sweepUploads(new Date(Date.now() + 48 * 3_600_000));
      expect(await test.database.query('select 1 from blobs where sha256 = $1', [fileOf('', bundle).sha256])).toEqual(
        [],
      );
    });
  });
}
