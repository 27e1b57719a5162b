import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { AppError, checkManifest, type ManifestFile, maxManifestFiles, pathFault } from '@perch/contracts';
import type { Progress } from '../progress.ts';

/** A file of this computer and its place in the version. */
export interface FoundFile {
  path: string;
  file: string;
  size: number;
  mtimeMs: number;
}
export interface HashedFile extends FoundFile {
  sha256: string;
}

/** Never part of a model; left out with a note. */
const leftOut = new Set(['.git', '.gitattributes', '.gitignore', '.DS_Store', '.cache', '__pycache__']);

export interface Found {
  files: FoundFile[];
  /** Names that were left out. */
  skipped: string[];
}

/**
 * The files of a version: one file, or all below a folder. Throws `invalid` (naming the file) for symbolic links and
 * whatever is no plain file, for names that no manifest may hold, and for too many files; `not_found` for nothing there.
 */
export async function findFiles(place: string, as?: string): Promise<Found> {
  const root = resolve(place);
  const info = await lstat(root).catch((error: NodeJS.ErrnoException) => {
    throw new AppError('not_found', `${place}: ${error.code === 'ENOENT' ? 'no such file or folder' : error.message}`);
  });
  refuseOdd(info, place);
  if (info.isFile()) {
    const path = as ?? basename(root);
    checkPath(path, place);
    return { files: [{ path, file: root, size: info.size, mtimeMs: info.mtimeMs }], skipped: [] };
  }
  const found: Found = { files: [], skipped: [] };
  await walk(root, as ?? '', found);
  if (found.files.length === 0) throw new AppError('invalid', `${place} holds no file; a version holds at least one`);
  found.files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return found;
}

async function walk(folder: string, prefix: string, found: Found): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries) {
    const file = join(folder, entry.name);
    if (leftOut.has(entry.name)) {
      found.skipped.push(entry.name);
      continue;
    }
    const path = prefix ? `${prefix}/${entry.name}` : entry.name;
    const info = await lstat(file);
    refuseOdd(info, file);
    checkPath(path, file);
    if (info.isDirectory()) await walk(file, path, found);
    else found.files.push({ path, file, size: info.size, mtimeMs: info.mtimeMs });
    if (found.files.length > maxManifestFiles)
      throw new AppError('invalid', `${folder}: a version holds at most ${maxManifestFiles} files, and here are more`);
  }
}

function refuseOdd(info: { isSymbolicLink(): boolean; isFile(): boolean; isDirectory(): boolean }, file: string): void {
  if (info.isSymbolicLink())
    throw new AppError('invalid', `${file} is a symbolic link; put the file itself in its place and upload again`);
  if (!info.isFile() && !info.isDirectory()) throw new AppError('invalid', `${file} is neither a file nor a folder`);
}

function checkPath(path: string, file: string): void {
  const fault = pathFault(path);
  if (fault)
    throw new AppError('invalid', `${file}: the path ${JSON.stringify(path.slice(0, 80))} in a version ${fault}`);
}

/** Hashes up to `lanes` files at a time, reading each once. */
export async function hashFiles(files: readonly FoundFile[], lanes: number, progress: Progress): Promise<HashedFile[]> {
  const hashed: HashedFile[] = [];
  let next = 0;
  const lane = async () => {
    for (let at = next++; at < files.length; at = next++) {
      const file = files[at] as FoundFile;
      hashed[at] = { ...file, sha256: await hashFile(file, progress) };
    }
  };
  await Promise.all(Array.from({ length: Math.min(lanes, files.length) }, lane));
  return hashed;
}

async function hashFile({ file, size }: FoundFile, progress: Progress): Promise<string> {
  const hash = createHash('sha256');
  let read = 0;
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) {
      hash.update(chunk as Buffer);
      read += (chunk as Buffer).length;
      progress.add((chunk as Buffer).length);
    }
  } catch (error) {
    throw new AppError('invalid', `cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
  if (read !== size) throw new AppError('integrity', `${file} changed while it was read; upload again`);
  return hash.digest('hex');
}

export function manifestOf(files: readonly HashedFile[]): ManifestFile[] {
  const manifest = files.map(({ path, sha256, size }) => ({ path, sha256, size }));
  checkManifest(manifest);
  return manifest;
}
