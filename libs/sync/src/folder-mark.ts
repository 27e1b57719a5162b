import { readdir, readFile } from 'node:fs/promises';
import type { DesiredModel } from '@perch/contracts';

export const markFile = 'perch.json';

/** What a model folder says about itself: written last, so that a folder with it is whole. */
export interface FolderMark {
  digest: string;
  /** Number of the version folder that holds it; absent: 1. */
  version?: number;
  /** Names of the models that it needs. */
  needs?: string[];
}

/** The only version folder of a model that was staged whole is 1, and then the mark need not say so. */
export const markFor = ({ digest, needs }: DesiredModel, version: number): FolderMark => ({
  digest,
  ...(version === 1 ? {} : { version }),
  ...(needs && needs.length > 0 ? { needs } : {}),
});

export const inVersion = (path: string, version: number): string =>
  path.startsWith('1/') ? `${version}/${path.slice(2)}` : path;

export async function versionFolders(folder: string): Promise<number[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && /^[1-9]\d*$/.test(entry.name))
    .map(({ name }) => Number(name));
}

export async function readMark(path: string): Promise<FolderMark | null> {
  try {
    const { digest, version, needs } = JSON.parse(await readFile(path, 'utf8')) as Partial<FolderMark>;
    if (typeof digest !== 'string') return null;
    return { digest, ...(version === undefined ? {} : { version }), ...(needs === undefined ? {} : { needs }) };
  } catch {
    return null; // cut short by a crash of the machine, or not ours
  }
}
