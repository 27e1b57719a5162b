import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { maxManifestFiles } from '@perch/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findFiles, hashFiles, manifestOf } from './manifest.source.ts';

const silent = { add: () => undefined, end: () => undefined };
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch model '));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function put(path: string, text = path): Promise<void> {
  await mkdir(join(folder, path, '..'), { recursive: true });
  await writeFile(join(folder, path), text);
}

describe('files of a version', () => {
  it('walks a folder in order, and leaves out what is no part of a model', async () => {
    for (const path of ['model.onnx', '1_Pooling/config.json', '.git/HEAD', '.DS_Store']) await put(path);
    const { files, skipped } = await findFiles(folder);
    expect(files.map(({ path }) => path)).toEqual(['1_Pooling/config.json', 'model.onnx']);
    expect(skipped.sort()).toEqual(['.DS_Store', '.git']);
  });
  it('takes one file under its own name or another', async () => {
    await put('weights.bin');
    expect((await findFiles(join(folder, 'weights.bin'))).files[0]?.path).toBe('weights.bin');
    expect((await findFiles(join(folder, 'weights.bin'), '1/model.onnx')).files[0]?.path).toBe('1/model.onnx');
  });
  it('hashes all of them, the empty one too', async () => {
    await put('a', 'x'.repeat(3_000_000));
    await put('b', '');
    const hashed = await hashFiles((await findFiles(folder)).files, 4, silent);
    const hash = (text: string) => createHash('sha256').update(text).digest('hex');
    expect(manifestOf(hashed)).toEqual([
      { path: 'a', sha256: hash('x'.repeat(3_000_000)), size: 3_000_000 },
      { path: 'b', sha256: hash(''), size: 0 },
    ]);
  });
});

describe('what no version may hold', () => {
  it('refuses symbolic links, naming the file, wherever they stand', async () => {
    await put('model.onnx');
    await symlink('/etc/passwd', join(folder, 'labels.txt'));
    await expect(findFiles(folder)).rejects.toThrow(/labels\.txt is a symbolic link/);
    await expect(findFiles(join(folder, 'labels.txt'))).rejects.toThrow(/is a symbolic link/);
    await rm(join(folder, 'labels.txt'));
    await symlink('/etc', join(folder, 'more'));
    await expect(findFiles(folder)).rejects.toThrow(/more is a symbolic link/);
  });
  it.each(['../model.onnx', '/model.onnx', 'a/../../b', 'a//b'])('refuses to call a file %s', async (path) => {
    await put('model.onnx');
    await expect(findFiles(join(folder, 'model.onnx'), path)).rejects.toThrow(/the path .* in a version must/);
  });
  it('refuses names that cannot be laid out elsewhere', async () => {
    await put('bad\nname');
    await expect(findFiles(folder)).rejects.toThrow(/control characters/);
  });
  it('refuses a folder of too many files', async () => {
    for (let n = 0; n <= maxManifestFiles; n += 1) await writeFile(join(folder, `f${n}`), '');
    await expect(findFiles(folder)).rejects.toThrow(new RegExp(`at most ${maxManifestFiles} files`));
  });
  it('refuses nothing at all', async () => {
    await expect(findFiles(folder)).rejects.toThrow(/holds no file/);
    await expect(findFiles(join(folder, 'none'))).rejects.toThrow(/no such file or folder/);
  });
  it('notices a file that changes while it is read', async () => {
    await put('a', 'one');
    const { files } = await findFiles(folder);
    await put('a', 'other');
    await expect(hashFiles(files, 1, silent)).rejects.toThrow(/changed while it was read/);
  });
});
