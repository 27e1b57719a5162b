import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onnxModel } from '../support/onnx.ts';
import {
  fileOf,
  newBytes,
  publisher,
  scoped,
  send,
  sha256Of,
  startTestRegistry,
  type TestRegistry,
  upload,
} from '../support/registry.ts';

let test: TestRegistry;
beforeAll(async () => {
  test = await startTestRegistry();
});
afterAll(() => test?.close());

const get = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer());

describe('a version from its manifest to published', () => {
  it('is created, sent, completed and published, each step with its actor and a wake-up', async () => {
    const bytes = newBytes();
    const { version, missing } = await test.registry.createVersion(publisher, 'nlp', 'first', {
      files: [fileOf('model.onnx', bytes), fileOf('copy/model.bin', bytes)],
      tags: ['b', 'a', 'b'],
      lineage: { gitCommit: 'abc' },
    });
    expect(version).toMatchObject({
      number: 1,
      state: 'uploading',
      framework: 'onnx',
      tags: ['a', 'b'],
      author: 'ann',
    });
    expect(missing).toHaveLength(1); // both files are the same bytes
    expect(await send(missing[0]!, bytes)).toEqual([200]);
    const draft = await test.registry.completeVersion(publisher, 'nlp', 'first', 1);
    expect(draft).toMatchObject({ state: 'draft', sizeBytes: 200, publishedAt: null });
    const published = await test.registry.publish(publisher, 'nlp', 'first', 1);
    expect(published.publishedAt).not.toBeNull();
    expect(await get((await test.registry.downloads('nlp', 'first', 1))[0]!.url)).toEqual(bytes);
    const changes = (await test.changes()).filter((change) => change.subject === 'nlp/first/1');
    expect(changes.map((change) => `${change.actor} ${change.action}`)).toEqual([
      'ann version.create',
      'ann version.complete',
      'ann version.publish',
    ]);
    expect(await test.database.query(`select key from work where kind = 'model'`)).toContainEqual({ key: 'nlp/first' });
  });

  it('reads its signature from the ONNX file; one that cannot be read is no reason to refuse it', async () => {
    const model = onnxModel({
      inputs: [{ name: 'x', type: 'FP32', shape: ['n', 4] }],
      outputs: [{ name: 'y', type: 'FP32', shape: ['n', 4] }],
      nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
    });
    const good = await upload(test, 'nlp/signed', { 'onnx/model.onnx': model, 'config.json': newBytes() });
    expect(good.signature).toEqual({
      inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
      outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 4] }],
    });
    const corrupt = Buffer.from(model).fill(0xff, 20);
    expect(await upload(test, 'nlp/signed', { 'model.onnx': corrupt })).toMatchObject({
      state: 'draft',
      signature: null,
    });
    expect(await upload(test, 'nlp/signed', { 'weights.bin': newBytes() })).toMatchObject({ framework: null });
  });

  it('publishing, tagging and the rest are harmless twice, and leave one row each', async () => {
    await upload(test, 'nlp/twice', { a: newBytes() });
    const at = [publisher, 'nlp', 'twice', 1] as const;
    for (const verb of ['publish', 'unpublish', 'archive', 'restore'] as const) {
      await test.registry[verb](...at);
      const before = await test.everything();
      await test.registry[verb](...at);
      expect(await test.everything()).toEqual(before);
    }
    await test.registry.changeTags(...at, { add: ['x'], remove: [] });
    await test.registry.describe(...at, { description: 'd', metadata: { k: 'v' } });
    const before = await test.everything();
    await test.registry.changeTags(...at, { add: ['x'], remove: ['y'] });
    await test.registry.describe(...at, { description: 'd' });
    expect(await test.everything()).toEqual(before);
  });

  it('a verb that does not fit names version and state, and changes nothing', async () => {
    await test.registry.createVersion(publisher, 'nlp', 'unfit', { files: [fileOf('a', newBytes())] });
    const before = await test.everything();
    for (const verb of ['publish', 'unpublish', 'archive', 'restore'] as const)
      await expect(test.registry[verb](publisher, 'nlp', 'unfit', 1)).rejects.toThrow(
        `cannot ${verb} version 1 of model nlp/unfit: it is uploading`,
      );
    await expect(test.registry.downloads('nlp', 'unfit', 1)).rejects.toThrow('still uploading');
    await expect(test.registry.publish(publisher, 'nlp', 'unfit', 2)).rejects.toMatchObject({ code: 'not_found' });
    expect(await test.everything()).toEqual(before);
  });
});

describe('the same bytes and others', () => {
  it('the same upload twice is one version, before and after it is complete', async () => {
    const files = { 'a.bin': newBytes(), 'b.bin': newBytes() };
    const wish = { files: Object.entries(files).map(([path, bytes]) => fileOf(path, bytes)) };
    const first = await test.registry.createVersion(publisher, 'same', 'm', wish);
    const again = await test.registry.createVersion(publisher, 'same', 'm', { files: [...wish.files].reverse() });
    expect(again.version.id).toBe(first.version.id);
    expect(again.missing.map((blob) => blob.uploadId).sort()).toEqual(
      first.missing.map((blob) => blob.uploadId).sort(),
    );
    expect(await upload(test, 'same/m', files)).toMatchObject({ number: 1, state: 'draft' });
    const before = await test.everything();
    const third = await test.registry.createVersion(publisher, 'same', 'm', wish);
    expect(third).toMatchObject({ version: { number: 1, state: 'draft' }, missing: [] });
    expect(await test.registry.completeVersion(publisher, 'same', 'm', 1)).toMatchObject({ state: 'draft' });
    expect(await test.everything()).toEqual(before);
  });

  it('the same bytes with other words and tags take them over', async () => {
    const files = { a: newBytes() };
    await upload(test, 'same/words', files, { tags: ['x'], description: 'old' });
    const again = await upload(test, 'same/words', files, { tags: ['y'], metadata: { k: 'v' } });
    expect(again).toMatchObject({ number: 1, tags: ['x', 'y'], description: 'old', metadata: { k: 'v' } });
  });

  it('other bytes under one name get the next number; going back to old bytes does too', async () => {
    const old = newBytes();
    const renamed = newBytes();
    expect(await upload(test, 'same/other', { a: old })).toMatchObject({ number: 1 });
    expect(await upload(test, 'same/other', { a: renamed })).toMatchObject({ number: 2 });
    expect(await upload(test, 'same/other', { b: renamed })).toMatchObject({ number: 3 }); // the path belongs to it
    expect(await upload(test, 'same/other', { a: old })).toMatchObject({ number: 1 }); // never published: goes on with it
    await test.registry.publish(publisher, 'same', 'other', 1);
    expect(await upload(test, 'same/other', { a: old })).toMatchObject({ number: 4 });
    await test.registry.archive(publisher, 'same', 'other', 4);
    expect(await upload(test, 'same/other', { a: old })).toMatchObject({ number: 5 });
  });

  it('ten uploads at once of different bytes get ten numbers, of the same bytes one', async () => {
    const wishes = Array.from({ length: 10 }, () => ({ files: [fileOf('a', newBytes())] }));
    const made = await Promise.all(wishes.map((wish) => test.registry.createVersion(publisher, 'same', 'race', wish)));
    expect(made.map(({ version }) => version.number).sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    const one = { files: [fileOf('a', newBytes())] };
    const same = await Promise.all(wishes.map(() => test.registry.createVersion(publisher, 'same', 'race', one)));
    expect(new Set(same.map(({ version }) => version.number))).toEqual(new Set([11]));
  });

  it('"already there" is said only to those who may read a version that holds the bytes', async () => {
    const secret = newBytes();
    await upload(test, 'vault/m', { a: secret });
    const wish = { files: [fileOf('a', secret)] };
    const stranger = await test.registry.createVersion(scoped('lab'), 'lab', 'm', wish);
    expect(stranger.missing).toHaveLength(1);
    await expect(test.registry.completeVersion(scoped('lab'), 'lab', 'm', 1)).rejects.toThrow(
      'file a: its bytes were not uploaded',
    );
    expect((await test.registry.createVersion(scoped('lab', 'vault'), 'lab', 'n', wish)).missing).toEqual([]);
    expect((await test.registry.createVersion(publisher, 'lab', 'o', wish)).missing).toEqual([]);
    expect(await test.registry.completeVersion(publisher, 'lab', 'o', 1)).toMatchObject({ state: 'draft' });
    expect(await send(stranger.missing[0]!, secret)).toEqual([200]);
    expect(await test.registry.completeVersion(scoped('lab'), 'lab', 'm', 1)).toMatchObject({ state: 'draft' });
    expect(await test.registry.blobUrls([sha256Of(secret), 'f'.repeat(64)])).toHaveLength(1);
  });
});

describe('manifests that must not be', () => {
  const bad = (path: string) => ({ files: [fileOf(path, newBytes())] });
  const one = newBytes();
  it.each([
    ['..', bad('../../etc/passwd'), '"../../etc/passwd" must not hold ".."'],
    ['.. inside', bad('a/../b'), '"a/../b"'],
    ['an absolute path', bad('/etc/passwd'), '"/etc/passwd" must be relative'],
    ['a drive', bad('C:/x'), '"C:/x" must be relative'],
    ['a backslash', bad('a\\b'), 'backslashes'],
    ['a control character', bad('a\nb'), 'control characters'],
    ['an empty segment', bad('a//b'), 'empty segments'],
    ['an empty path', bad(''), '1 to 512'],
    ['a path twice', { files: [fileOf('a', one), fileOf('a', newBytes())] }, 'the file a twice'],
    [
      'a file as a folder',
      { files: [fileOf('a', one), fileOf('a/b', newBytes())] },
      'a as a file and as a folder of a/b',
    ],
    ['one hash with two sizes', { files: [fileOf('a', one), { ...fileOf('b', one), size: 7 }] }, 'a and b one SHA-256'],
    ['no files', { files: [] }, 'at least one file'],
    [
      '10,000 files',
      { files: Array.from({ length: 10_000 }, (_, n) => ({ ...fileOf('x', one), path: `f/${n}` })) },
      '2000 files',
    ],
    ['a hash that is none', { files: [{ path: 'a', sha256: 'A'.repeat(64), size: 1 }] }, 'files.0.sha256'],
    ['a negative size', { files: [{ ...fileOf('a', one), size: -1 }] }, 'files.0.size'],
    ['a bad tag', { ...bad('a'), tags: ['not a tag'] }, 'tags.0'],
  ])('%s is refused by name and nothing changes', async (_case, wish, words) => {
    const before = await test.everything();
    const create = test.registry.createVersion(publisher, 'bad', 'm', wish as never);
    await expect(create).rejects.toMatchObject({ code: 'invalid' });
    await expect(create).rejects.toThrow(words);
    expect(await test.everything()).toEqual(before);
  });

  it('so are names', async () => {
    for (const [project, name] of [
      ['../x', 'm'],
      ['p', 'a/b'],
      ['', 'm'],
      ['p', 'x'.repeat(65)],
    ] as const)
      await expect(test.registry.createVersion(publisher, project, name, bad('a'))).rejects.toMatchObject({
        code: 'invalid',
      });
  });

  it('2,000 files are fine', async () => {
    const files = Array.from({ length: 2_000 }, (_, n) => ({ ...fileOf('x', one), path: `f/${n}` }));
    const { version, missing } = await test.registry.createVersion(publisher, 'wide', 'm', { files });
    expect([version.files?.length, missing.length]).toEqual([2_000, 1]);
  });
});

describe('searching models', () => {
  beforeAll(async () => {
    await upload(
      test,
      'search/alpha',
      { a: newBytes() },
      { tags: ['prod', 'de'], metadata: { owner: 'ann', size: 's' } },
    );
    await upload(test, 'search/alpha', { a: newBytes() }, { tags: ['dev'], metadata: { owner: 'bob' } });
    await upload(test, 'search/beta_x', { a: newBytes() }, { tags: ['prod'], metadata: { owner: 'bob' } });
    await upload(test, 'search2/betaYx', { a: newBytes() });
  });
  const names = async (wanted: object, actor = publisher) =>
    (await test.registry.listModels(actor, { limit: 100, ...wanted })).items.map((model) => model.name);

  it.each([
    [{ project: 'search' }, ['alpha', 'beta_x']],
    [{ project: 'search', tag: 'prod' }, ['alpha', 'beta_x']],
    [{ project: 'search', tag: ['prod', 'de'] }, ['alpha']],
    [{ project: 'search', tag: ['prod', 'dev'] }, []], // all on one version
    [{ project: 'search', metadata: 'owner=bob' }, ['alpha', 'beta_x']],
    [{ project: 'search', tag: 'prod', metadata: ['owner=ann', 'size=s'] }, ['alpha']],
    [{ name: 'BETA_' }, ['beta_x']],
    [{ name: 'a%a' }, []],
    [{ project: 'nowhere' }, []],
  ])('%j finds %j', async (wanted, found) => expect(await names(wanted)).toEqual(found));

  it('shows only the projects of the key', async () =>
    expect(await names({ name: 'bet' }, scoped('search2'))).toEqual(['betaYx']));

  it('goes through pages without losing or doubling one', async () => {
    const all = await names({});
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await test.registry.listModels(publisher, { limit: 2, cursor });
      found.push(...page.items.map((model) => model.name));
      if (!page.nextCursor) break;
      cursor = page.nextCursor;
    }
    expect(found).toEqual(all);
    await expect(test.registry.listModels(publisher, { limit: 2, cursor: 'nonsense' })).rejects.toThrow('cursor');
    await expect(test.registry.listModels(publisher, { limit: 2, metadata: 'owner' })).rejects.toThrow('key=value');
  });

  it('counts versions and names the newest', async () => {
    await test.registry.publish(publisher, 'search', 'alpha', 1);
    expect(await test.registry.getModel('search', 'alpha')).toMatchObject({
      latestVersion: 2,
      latestPublished: 1,
      versions: 2,
      tags: ['de', 'dev', 'prod'],
    });
    await expect(test.registry.getModel('search', 'gamma')).rejects.toThrow('model search/gamma does not exist');
    expect((await test.registry.listVersions('search', 'alpha')).map((version) => version.number)).toEqual([2, 1]);
    expect(await test.registry.listVersions('search', 'gamma')).toEqual([]);
  });
});
