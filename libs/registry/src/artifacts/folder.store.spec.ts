import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { sha256Hex } from '@perch/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderStore } from './folder.store.ts';

let root: string;
let store: FolderStore;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'perch-folder-'));
  store = await FolderStore.open({ root, publicUrl: () => 'http://h', signingKey: async () => 'k' });
});
afterEach(() => rm(root, { recursive: true, force: true }));

const known = (text: string) => ({ sha256: sha256Hex(text), sizeBytes: text.length });

describe('folder store', () => {
  it.each(['../x', 'a/../../x', '/etc/passwd', 'a//b', 'a/./b', 'a\\b', '', 'a\0b', 'a b'])(
    'refuses the key %j',
    async (key) => {
      await expect(store.head(key)).rejects.toMatchObject({ code: 'invalid' });
      await expect(store.put(key, Readable.from(['x']), known('x'))).rejects.toMatchObject({ code: 'invalid' });
      await expect(store.delete(key)).rejects.toMatchObject({ code: 'invalid' });
    },
  );

  it('leaves nothing half-written when the sender dies', async () => {
    const dying = new Readable({
      read() {
        this.push('half');
        this.destroy(Object.assign(new Error('gone'), { code: 'ECONNRESET' }));
      },
    });
    await expect(store.put('a/b', dying, known('half'))).rejects.toMatchObject({ code: 'cancelled' });
    expect(await readdir(join(root, 'incoming'))).toEqual([]);
    expect(await store.head('a/b')).toBeUndefined();
  });

  it('asks for its signing key until it is there', async () => {
    let there = false;
    const late = await FolderStore.open({
      root,
      publicUrl: () => 'http://h',
      signingKey: async () => {
        if (!there) throw new Error('database away');
        return 'k';
      },
    });
    await expect(late.signGet('a/b', new Date())).rejects.toThrow('database away');
    there = true;
    expect(await late.signGet('a/b', new Date())).toContain('http://h/store/v1/a/b?');
  });

  it('takes away what was left in incoming a day ago, and nothing younger', async () => {
    for (const name of ['old', 'young']) await writeFile(join(root, 'incoming', name), 'x');
    const old = new Date(Date.now() - 25 * 3_600_000);
    await utimes(join(root, 'incoming', 'old'), old, old);
    for await (const upload of store.multipart.list()) expect(upload).toBeUndefined();
    expect(await readdir(join(root, 'incoming'))).toEqual(['young']);
  });

  it('a folder without its description is no upload', async () => {
    const id = await store.multipart.start('a/b');
    await rm(join(root, 'uploads', id, 'upload.json'));
    expect(await store.multipart.parts({ key: 'a/b', uploadId: id })).toBeUndefined();
    expect(await store.multipart.parts({ key: 'a/b', uploadId: '../..' })).toBeUndefined();
    expect(await store.multipart.parts({ key: 'other', uploadId: await store.multipart.start('a/b') })).toBeUndefined();
  });
});
