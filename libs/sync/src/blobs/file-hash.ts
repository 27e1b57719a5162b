import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';

const chunkBytes = 1024 ** 2;

/** Feeds bytes 0 to `endBytes` of an open file to a hash; returns how many there were. Two buffers: one is read while the other is hashed. */
export async function hashFile(file: FileHandle, hash: Hash, endBytes: number): Promise<number> {
  const buffers = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)];
  const readAt = (n: number, offset: number) =>
    file.read(buffers[n % 2]!, 0, Math.min(chunkBytes, endBytes - offset), offset);
  let offset = 0;
  let reading = offset < endBytes ? readAt(0, 0) : undefined;
  for (let n = 0; reading; n += 1) {
    const { bytesRead } = await reading;
    if (bytesRead === 0) break;
    offset += bytesRead;
    reading = offset < endBytes ? readAt(n + 1, offset) : undefined;
    hash.update(buffers[n % 2]!.subarray(0, bytesRead));
  }
  return offset;
}

/** SHA-256 (hex) of a whole file. */
export async function sha256OfFile(path: string, sizeBytes: number): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, 'r');
  try {
    await hashFile(file, hash, sizeBytes);
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}
