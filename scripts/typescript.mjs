/**
 * `node --conditions=perch-source --import ./scripts/typescript.mjs file.ts`: runs TypeScript sources as they are, with
 * the settings of the build, for programs of `test/` that are started by hand.
 */
import { readFile } from 'node:fs/promises';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { swcSettings } from './swc.mjs';

if (isMainThread) register(import.meta.url);

/** A module hook of Node: called for each file that is loaded. */
export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
  const { transform } = await import('@swc/core');
  const filename = fileURLToPath(url);
  const { code } = await transform(await readFile(filename, 'utf8'), {
    filename,
    sourceMaps: 'inline',
    swcrc: false,
    ...swcSettings,
  });
  return { format: 'module', source: code, shortCircuit: true };
}
