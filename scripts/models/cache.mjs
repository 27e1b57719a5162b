/** Built models live outside the tree, so that clones share them and a clean checkout stays small. */
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

const places = () => [
  process.env.PERCH_TOOLS_DIR
    ? join(process.env.PERCH_TOOLS_DIR, 'models')
    : join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'perch', 'models'),
  join(tmpdir(), `perch-${userInfo().username}`, 'models'),
];

const exists = (path) =>
  stat(path).then(
    () => true,
    () => false,
  );

/** A fresh folder beside the final one (a rename must stay on one file system), in the first place that takes one. */
async function workFolder() {
  let fault;
  for (const place of places()) {
    try {
      await mkdir(place, { recursive: true });
      return { place, folder: await mkdtemp(join(place, '.building-')) };
    } catch (error) {
      fault = error;
    }
  }
  throw new Error(`no folder for built models can be written (set PERCH_TOOLS_DIR): ${fault.message}`);
}

/**
 * The folder `name` of the cache; when missing, `build(folder)` fills it. It appears whole or not at all, and two
 * builders at once both succeed: the later one drops its own copy.
 */
export async function cachedFolder(name, build) {
  for (const place of places()) if (await exists(join(place, name))) return join(place, name);
  const { place, folder } = await workFolder();
  const final = join(place, name);
  try {
    await build(folder);
    await rename(folder, final);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    if (!(await exists(final))) throw error;
  }
  return final;
}
