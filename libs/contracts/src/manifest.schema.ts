import { z } from 'zod';
import { digestOf } from './digest.ts';
import { AppError } from './error.ts';
import { sha256 } from './names.schema.ts';

export const maxManifestFiles = 2_000;
export const maxFileBytes = 200 * 1024 ** 3;

/** Why a path may not stand in a manifest, or undefined. Manifests are unpacked below a folder, so nothing may leave it. */
export function pathFault(path: string): string | undefined {
  if (path.length === 0 || path.length > 512) return 'must have 1 to 512 characters';
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return 'must not hold control characters or backslashes';
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'must be relative';
  const parts = path.split('/');
  if (parts.some((part) => part === '..' || part === '.' || part === ''))
    return 'must not hold "..", "." or empty segments';
  if (parts.some((part) => Buffer.byteLength(part) > 255)) return 'must not hold a segment of over 255 bytes';
  return undefined;
}

export const manifestFile = z
  .strictObject({
    path: z.string().superRefine((path, ctx) => {
      const fault = pathFault(path);
      if (fault) ctx.addIssue({ code: 'custom', message: `file path ${JSON.stringify(path.slice(0, 80))} ${fault}` });
    }),
    sha256,
    size: z.number().int().min(0).max(maxFileBytes),
  })
  .meta({ id: 'ManifestFile' });
export type ManifestFile = z.infer<typeof manifestFile>;

export const manifestFiles = z
  .array(manifestFile)
  .min(1, 'a version holds at least one file')
  .max(maxManifestFiles, `a version holds at most ${maxManifestFiles} files`);

/** Identity of a version's bytes: SHA-256 of the canonical JSON of its files, sorted by path. */
export function manifestDigest(files: readonly ManifestFile[]): string {
  const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
  return digestOf(sorted.map(({ path, sha256, size }) => ({ path, sha256, size })));
}

/** Two files at one path, or a file where another needs a folder, cannot be laid out on a disk. */
export function checkManifest(files: readonly ManifestFile[]): void {
  const seen = new Set<string>();
  for (const { path } of files) {
    if (seen.has(path)) throw new AppError('invalid', `manifest names the file ${path} twice; name each path once`);
    seen.add(path);
  }
  for (const { path } of files) {
    const parts = path.split('/');
    for (let n = 1; n < parts.length; n += 1) {
      const folder = parts.slice(0, n).join('/');
      if (seen.has(folder))
        throw new AppError('invalid', `manifest names ${folder} as a file and as a folder of ${path}`);
    }
  }
}
