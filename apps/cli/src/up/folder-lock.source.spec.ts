import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockFolder } from './folder-lock.source.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-lock-'));
  path = join(folder, 'perch.lock');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '']);
  await new Promise((done) => child.once('exit', done));
  return child.pid as number;
}

describe('one perch up a data folder', () => {
  it('refuses the second one and names the first', async () => {
    const lock = await lockFolder(path);
    expect(lock.recovered).toBe(false);
    await expect(lockFolder(path)).rejects.toThrow(`process ${process.pid}`);
    await lock.release();
    await (await lockFolder(path)).release();
    expect(await readdir(folder)).toEqual([]);
  });
  it('lets exactly one of many win', async () => {
    const results = await Promise.allSettled(Array.from({ length: 12 }, () => lockFolder(path)));
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBe(1);
  });
  it.each([
    ['a process that is gone', async () => JSON.stringify({ pid: await deadPid(), begun: '1' })],
    ['a process id that was given again', async () => JSON.stringify({ pid: process.pid, begun: '1' })],
    ['half a line', async () => '{"pid":'],
    ['nothing', async () => ''],
  ])('takes over a lock of %s', async (_what, content) => {
    await writeFile(path, await content());
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => lockFolder(path)));
    const won = results.filter((result) => result.status === 'fulfilled');
    expect(won.length).toBe(1);
    expect(JSON.parse(await readFile(path, 'utf8')).pid).toBe(process.pid);
    await won[0]?.value.release();
    expect(await readdir(folder)).toEqual([]);
  });
});
