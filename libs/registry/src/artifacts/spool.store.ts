import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError } from '@perch/contracts';

/** A body that lies complete and synced in a file of ours, with what was counted while it came in. */
export interface Spooled {
  path: string;
  sha256: string;
  sizeBytes: number;
}

/**
 * Writes `body` to a new file in `folder` while counting and hashing it. Throws `too_large` as soon as it exceeds
 * `maxBytes`, `no_space` when the disk is full, `cancelled` when the sender went away; leaves nothing behind then.
 */
export async function spool(folder: string, body: Readable, maxBytes: number, signal?: AbortSignal): Promise<Spooled> {
  const path = join(folder, randomUUID());
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) return done(new AppError('too_large', `body is over the ${maxBytes} bytes allowed`));
      hash.update(chunk);
      done(null, chunk);
    },
  });
  try {
    await pipeline(body, count, createWriteStream(path, { flags: 'wx' }), { signal });
    await sync(path);
  } catch (error) {
    await rm(path, { force: true });
    throw spoolFault(error);
  }
  return { path, sha256: hash.digest('hex'), sizeBytes };
}

function spoolFault(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new AppError('no_space', 'the artifact folder has no space left; free some and send the file again');
  if (code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ECONNRESET' || code === 'ABORT_ERR')
    return new AppError('cancelled', 'the sender went away before the whole body was there', { cause: error });
  return error;
}

/** Makes what was written survive a power cut; folders hold their entries only when they are synced too. */
async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  await file.sync().finally(() => file.close());
}

/** Puts a finished file in its place in one step: a reader sees the whole file or none. */
export async function settle(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await rename(from, to);
  await sync(dirname(to));
}

/** One file out of several, in order. */
export async function concatenate(parts: readonly string[], to: string): Promise<void> {
  await rm(to, { force: true });
  for (const part of parts) await pipeline(createReadStream(part), createWriteStream(to, { flags: 'a' }));
  await sync(to);
}
