import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError, type DownloadUrl, pathFault } from '@perch/contracts';
import type { AdminClient } from './admin.client.ts';
import { type Progress, startProgress } from './progress.ts';

const lanes = 4;

/**
 * Writes the files below the folder, each checked against its hash; what is there already and right is not fetched
 * again. Throws `integrity` for a path that leaves the folder (nothing is written) and for wrong bytes (not kept).
 */
export async function downloadFiles(
  client: AdminClient,
  files: readonly DownloadUrl[],
  folder: string,
  show: boolean,
): Promise<number> {
  for (const { path } of files) {
    const fault = pathFault(path);
    if (fault)
      throw new AppError(
        'integrity',
        `the control plane names a file ${JSON.stringify(path)} that ${fault}; nothing was written`,
      );
  }
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const progress = await startProgress('downloading', total, show);
  const queue = [...files];
  const lane = async () => {
    for (let file = queue.shift(); file; file = queue.shift()) await download(client, file, folder, progress);
  };
  await Promise.all(Array.from({ length: lanes }, lane)).finally(() => progress.end());
  return total;
}

/** Beside its place first, then renamed: what stands under the name is whole and of the right hash. */
async function download(client: AdminClient, file: DownloadUrl, folder: string, progress: Progress): Promise<void> {
  const target = join(folder, file.path);
  if ((await hashOf(target)) === file.sha256) return progress.add(file.size);
  await mkdir(dirname(target), { recursive: true });
  const staging = `${target}.part`;
  const hash = createHash('sha256');
  const { status, body } = await client.fetchBytes(file.url);
  if (status !== 200) {
    body.resume();
    throw new AppError('upstream', `${file.path}: the artifact store answered ${status}; try again`);
  }
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, next) {
      hash.update(chunk);
      progress.add(chunk.length);
      next(null, chunk);
    },
  });
  try {
    await pipeline(body, meter, createWriteStream(staging));
  } catch (error) {
    throw new AppError('unavailable', `${file.path}: ${(error as Error).message}; download again to go on`, {
      cause: error,
    });
  }
  if (hash.digest('hex') !== file.sha256) {
    await rm(staging, { force: true });
    throw new AppError('integrity', `${file.path}: the bytes do not match their hash ${file.sha256}; nothing was kept`);
  }
  await rename(staging, target);
}

async function hashOf(path: string): Promise<string | undefined> {
  if (!(await stat(path).catch(() => undefined))?.isFile()) return undefined;
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
