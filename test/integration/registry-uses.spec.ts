import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileOf, newBytes, publisher, startTestRegistry, type TestRegistry, upload } from '../support/registry.ts';

let test: TestRegistry;
beforeAll(async () => {
  test = await startTestRegistry();
});
afterAll(() => test?.close());

const usesOf = async (name: string, number: number) => (await test.registry.getVersion('bls', name, number)).uses;

describe('models that a version uses', () => {
  it('are kept in one form and shown', async () => {
    const version = await upload(
      test,
      'bls/caller',
      { '1/model.py': newBytes() },
      { uses: { b: 'bls/b', a: { model: 'bls/a', version: 2, as: 'parameter' } } },
    );
    expect(await usesOf('caller', version.number)).toEqual({
      a: { model: 'bls/a', version: 2, as: 'parameter' },
      b: { model: 'bls/b', as: 'literal' },
    });
  });

  it('the same bytes with the same uses are the same version, with others another one', async () => {
    const bytes = newBytes();
    const files = [fileOf('1/model.py', bytes)];
    const first = await upload(test, 'bls/same', { '1/model.py': bytes }, { uses: { s: 'bls/s' } });
    const again = await test.registry.createVersion(publisher, 'bls', 'same', {
      files,
      uses: { s: { model: 'bls/s', as: 'literal' } },
    });
    expect(again.version.number).toBe(first.number);
    const other = await test.registry.createVersion(publisher, 'bls', 'same', { files, uses: { s: 'bls/t' } });
    expect(other.version).toMatchObject({ number: first.number + 1, state: 'uploading' });
    // Two uploads of the same bytes at once, told apart by what they use.
    const none = await test.registry.createVersion(publisher, 'bls', 'same', { files });
    expect(none.version.number).toBe(first.number + 2);
  });

  it('never change after the upload, whoever writes', async () => {
    const { id } = await upload(test, 'bls/fixed', { '1/model.py': newBytes() }, { uses: { s: 'bls/s' } });
    await expect(test.database.query(`update versions set uses = '{}' where id = '${id}'`)).rejects.toThrow(
      /never changes after draft/,
    );
  });

  it('and processing that it carries is told, tells versions of the same bytes apart, and never changes', async () => {
    const bytes = newBytes();
    const files = [fileOf('model.onnx', bytes)];
    const processing = { module: 'ner/rules@3', options: { k: 1 } };
    const first = await upload(test, 'bls/carried', { 'model.onnx': bytes }, { processing });
    expect((await test.registry.getVersion('bls', 'carried', first.number)).processing).toEqual(processing);
    const again = (wish: object) => test.registry.createVersion(publisher, 'bls', 'carried', { files, ...wish });
    expect((await again({ processing: { options: { k: 1 }, module: 'ner/rules@3' } })).version.number).toBe(
      first.number,
    );
    expect((await again({ processing: { module: 'ner/rules@4' } })).version.number).toBe(first.number + 1);
    const none = await again({});
    expect(none.version.number).toBe(first.number + 2);
    expect(none.version).not.toHaveProperty('processing');
    await expect(test.database.query(`update versions set processing = null where id = '${first.id}'`)).rejects.toThrow(
      /never changes after draft/,
    );
  });

  it('tell who uses a model, as long as the version may be served', async () => {
    const { number } = await upload(test, 'bls/user', { '1/model.py': newBytes() }, { uses: { s: 'bls/used' } });
    expect(await test.registry.modelsUsing('bls/used')).toEqual(['bls/user']);
    await test.registry.archive(publisher, 'bls', 'user', number);
    expect(await test.registry.modelsUsing('bls/used')).toEqual([]);
  });

  it.each([
    ['a name that is none', { 'a b': 'bls/x' }, 'a used name is'],
    ['a name as Perch gives them', { 'x-v1-0123456789ab': 'bls/x' }, 'must not look like one that Perch gives'],
    ['a model without a project', { a: 'x' }, 'a used model is project/model'],
  ])('%s is refused', async (_name, uses, words) => {
    const files = [fileOf('1/model.py', newBytes())];
    await expect(test.registry.createVersion(publisher, 'bls', 'bad', { files, uses })).rejects.toThrow(words);
  });
});
