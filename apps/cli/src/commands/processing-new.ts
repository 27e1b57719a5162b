import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AppError, parseWith, taskName } from '@perch/contracts';
import { said } from '../output.ts';
import { installedSdk } from '../processing/sdk.source.ts';
import { skeletonFiles } from '../processing/skeleton.plan.ts';
import type { Run } from '../verb.ts';

export const run: Run = async (invocation, [place], options) => {
  const task: string | undefined = options['task'];
  if (task !== undefined) parseWith(taskName, task, '--task');
  const folder = resolve(place as string);
  const there = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new AppError('invalid', `${place}: ${error.message}`);
  });
  if (there.length > 0)
    throw new AppError('conflict', `${place} is there and not empty; give the name of a new folder`);
  const name =
    basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, '-')
      .replace(/^[^a-z0-9]+/, '') || 'module';
  const files = skeletonFiles(name, task, installedSdk());
  for (const { path, text } of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  invocation.hint(`Next: perch processing test ${place}`);
  const paths = files.map(({ path }) => path);
  return said({ folder, name, task: task ?? null, files: paths }, `Module ${name} is written: ${paths.join(', ')}.`);
};
