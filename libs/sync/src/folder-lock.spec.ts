import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderLock } from './folder-lock.ts';

describe('FolderLock', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-lock-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const path = () => join(folder, 'lock');
  const change = async (over: Record<string, unknown>) =>
    writeFile(path(), JSON.stringify({ ...JSON.parse(await readFile(path(), 'utf8')), ...over }));

  it('is held by one, and free again when let go', async () => {
    const first = new FolderLock(folder);
    await first.take();
    await expect(new FolderLock(folder).take()).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/process \d+ on .*give each agent its own PERCH_DATA_DIR/),
    });
    await first.release();
    const next = new FolderLock(folder);
    await next.take();
    await next.release();
  });

  it('is one’s when many ask at once', async () => {
    const locks = Array.from({ length: 8 }, () => new FolderLock(folder));
    const results = await Promise.allSettled(locks.map((lock) => lock.take()));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('passes from a process that is gone, also when its number was given to another', async () => {
    const dead = spawn(process.execPath, ['-e', '']);
    await new Promise((resolve) => dead.once('exit', resolve));
    for (const holder of [{ pid: dead.pid }, { startTime: 1 }, { bootId: 'before the machine was started again' }]) {
      const first = new FolderLock(folder);
      await first.take();
      await change({ ...holder, id: 'gone' });
      const next = new FolderLock(folder);
      await next.take();
      await next.release();
      await first.release();
    }
  });

  it('passes from another machine when that was silent for a while', async () => {
    const first = new FolderLock(folder);
    await first.take();
    await change({ host: 'elsewhere', id: 'other' });
    await expect(new FolderLock(folder).take()).rejects.toThrow(/on elsewhere/);
    const before = new Date(Date.now() - 60_000);
    await utimes(path(), before, before);
    const next = new FolderLock(folder);
    await next.take();
    await next.release();
    await first.release();
  });
});
