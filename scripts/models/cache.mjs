/** Built models live outside the tree, so that clones share them and a clean checkout stays small. */
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const building = '.building-';
const abandonedMs = 3_600_000;

/** `shared`: anybody may put a folder there, so only our own is trusted. */
const places = () => [
  {
    path: process.env.PERCH_TOOLS_DIR
      ? join(process.env.PERCH_TOOLS_DIR, 'models')
      : join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'perch', 'models'),
    shared: false,
  },
  { path: join(tmpdir(), `perch-models-${process.getuid?.() ?? 'user'}`), shared: true },
];

async function isThere(path, shared) {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && (!shared || !process.getuid || found.uid === process.getuid());
}

/** What a killed builder left behind. */
async function sweep(place) {
  for (const name of await readdir(place)) {
    const { mtimeMs } = (await stat(join(place, name)).catch(() => undefined)) ?? { mtimeMs: Date.now() };
    if (name.startsWith(building) && Date.now() - mtimeMs > abandonedMs)
      await rm(join(place, name), { recursive: true, force: true });
  }
}

/** A fresh folder beside the final one (a rename must stay on one file system), in the first place that takes one. */
async function workFolder() {
  let fault;
  for (const { path, shared } of places()) {
    try {
      await mkdir(path, { recursive: true, mode: shared ? 0o700 : 0o755 });
      if (!(await isThere(path, shared))) throw new Error(`${path} belongs to somebody else`);
      await sweep(path);
      return { place: path, folder: await mkdtemp(join(path, building)) };
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
  for (const { path, shared } of places()) if (await isThere(join(path, name), shared)) return join(path, name);
  const { place, folder } = await workFolder();
  const final = join(place, name);
  try {
    await build(folder);
    await chmod(folder, 0o755);
    await rename(folder, final);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    if (!(await isThere(final, false))) throw error;
  }
  return final;
}
