import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
afterAll(() => test.close());

describe('a version from its manifest to published', () => {
  it('is created, sent, completed and published, each step with its actor', async () => {
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
    expect(draft).toMatchObject({ state: 'draft', sizeBytes: 200, signature: null });
    const published = await test.registry.publish(publisher, 'nlp', 'first', 1);
    expect(published.publishedAt).not.toBeNull();
    const urls = await test.registry.downloads('nlp', 'first', 1);
    expect(Buffer.from(await (await fetch(urls[0]!.url)).arrayBuffer()).equals(bytes)).toBe(true);
    const changes = (await test.changes()).filter((change) => change.subject === 'nlp/first/1');
    expect(changes.map((change) => `${change.actor} ${change.action}`)).toEqual([
      'ann version.create',
      'ann version.complete',
      'ann version.publish',
    ]);
    expect(await test.database.query(`select key from work where kind = 'model'`)).toContainEqual({ key: 'nlp/first' });
    expect(sha256Of(bytes)).toBe((await test.registry.blobUrls([sha256Of(bytes), 'f'.repeat(64)]))[0]!.sha256);
    expect(scoped('x').projects).toEqual(['x']);
  });

  it('two uploads at once', async () => {
    const version = await upload(test, 'nlp/second', { 'a.txt': newBytes() });
    expect(version.number).toBe(1);
  });
});
