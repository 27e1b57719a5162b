import { randomBytes } from 'node:crypto';
import {
  constants,
  copyFile,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { AppError, type DesiredModel } from '@perch/contracts';
import { type BlobStore, type Signature, sameFile, signatureOf } from './blobs/blob.store.ts';
import { sha256OfFile } from './blobs/file-hash.ts';
import { type FolderMark, inVersion, markFile, markFor, readMark, versionFolders } from './folder-mark.ts';
import { isOurName } from './sync-world.ts';

const configFile = 'config.pbtxt';
const cannotLink = new Set(['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP']);
const exists = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  );
const errnoOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? '';

/** The configuration and the mark are written by us, whatever the version brings under these names. */
export const ownFiles = (model: DesiredModel): DesiredModel['files'] =>
  model.files.filter(({ path }) => path !== configFile && path !== markFile);

export interface RepositoryFolders {
  /** Triton's model repository. */
  repository: string;
  /** Where folders are built and taken apart: outside the repository, on its file system if there is such a place. */
  staging: string;
}

/** The model repository of one Triton: whole folders appear and disappear by renames. */
export class RepositoryStore {
  private readonly folders: RepositoryFolders;
  private readonly blobs: BlobStore;
  /** Files that had to be copied instead of linked, as this process left them after hashing the copy. */
  private readonly copies = new Map<string, Signature>();
  private readonly marks = new Map<string, { seen: string; mark: FolderMark | null }>();

  constructor(folders: RepositoryFolders, blobs: BlobStore) {
    this.folders = folders;
    this.blobs = blobs;
  }

  /** Makes both folders and clears what an earlier process left half-built. */
  async open(): Promise<void> {
    await mkdir(this.folders.repository, { recursive: true });
    await rm(this.folders.staging, { recursive: true, force: true });
    await mkdir(this.folders.staging, { recursive: true });
  }

  /** Every folder of the repository by name, with its mark; null: not written by us. */
  async list(): Promise<Map<string, FolderMark | null>> {
    const entries = await readdir(this.folders.repository, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name);
    const found = new Map<string, FolderMark | null>();
    await Promise.all(names.map(async (name) => found.set(name, await this.markOf(name))));
    for (const name of this.marks.keys()) if (!found.has(name)) this.marks.delete(name);
    return found;
  }

  /** `current`: the folder has this model's mark and configuration. `intact`: and each file is linked to a proven blob. */
  async inspect(name: string, model: DesiredModel, config: string): Promise<{ current: boolean; intact: boolean }> {
    const folder = this.pathOf(name);
    const text = await readFile(join(folder, configFile), 'utf8').catch(() => undefined);
    const current = (await this.markOf(name))?.digest === model.digest && text === config;
    return { current, intact: current && (await this.isLinked(name, model)) };
  }

  /** Each file is a proven one that was not changed since: asked when Triton has read them. */
  async isAsStaged(name: string, model: DesiredModel): Promise<boolean> {
    return (await this.blobs.missing(ownFiles(model))).size === 0 && (await this.isLinked(name, model));
  }

  private async isLinked(name: string, model: DesiredModel): Promise<boolean> {
    const { version = 1 } = (await this.markOf(name)) ?? {};
    const whole = await Promise.all(
      ownFiles(model).map((file) => this.isFileIntact(join(this.pathOf(name), inVersion(file.path, version)), file)),
    );
    return whole.every(Boolean);
  }

  /**
   * Builds the folder aside from proven blobs and moves it into the repository; a folder that stood there is replaced,
   * so call it only while Triton does not serve the model. `trace` is told each step (for crash tests).
   */
  async stage(name: string, model: DesiredModel, config: string, trace: (step: string) => void): Promise<void> {
    const target = this.pathOf(name);
    await this.refuseForeign(name);
    const aside = this.asidePath(name);
    await this.build(aside, model, { config, mark: markFor(model, 1) }, trace);
    await this.clear(name);
    trace('old folder gone');
    await rename(aside, target);
    for (const file of ownFiles(model)) this.moveCopy(join(aside, file.path), join(target, file.path));
    trace('folder in place');
  }

  /**
   * Puts a newer model under a literal name beside the one that Triton serves: its version folder under the next number,
   * in one rename, then what lies beside it, the mark last. The older version folder stays until `settle`.
   */
  async renew(name: string, model: DesiredModel, config: string, trace: (step: string) => void): Promise<void> {
    const target = this.pathOf(name);
    await this.refuseForeign(name);
    await mkdir(target, { recursive: true });
    const version = Math.max(0, ...(await versionFolders(target))) + 1;
    const aside = this.asidePath(name);
    await this.build(aside, model, { config, mark: markFor(model, version) }, trace);
    await rename(join(aside, '1'), join(target, String(version)));
    trace('version in place');
    for (const { path } of ownFiles(model)) {
      const to = join(target, inVersion(path, version));
      if (!path.startsWith('1/'))
        await mkdir(dirname(to), { recursive: true }).then(() => rename(join(aside, path), to));
      this.moveCopy(join(aside, path), to);
    }
    for (const file of [configFile, markFile]) await rename(join(aside, file), join(target, file));
    trace('folder in place');
    await rm(aside, { recursive: true, force: true });
  }

  /** Removes the version folders that the model's own has replaced. */
  async settle(name: string): Promise<void> {
    const mark = await this.markOf(name);
    if (!mark?.version) return;
    for (const version of await versionFolders(this.pathOf(name)))
      if (version !== mark.version) {
        const trash = this.asidePath(name);
        await rename(join(this.pathOf(name), String(version)), trash);
        await rm(trash, { recursive: true, force: true });
      }
  }

  /** Takes the folder out of the repository in one rename and then removes its files. Absent is fine. */
  async remove(name: string): Promise<void> {
    await this.clear(name);
  }

  /** What lies there is no longer taken for the model: it goes, or, where an older one serves under its name, is replaced. */
  async distrust(name: string): Promise<void> {
    const mark = await this.markOf(name);
    if (isOurName(name) || !mark) return this.remove(name);
    await writeFile(join(this.pathOf(name), markFile), JSON.stringify({ ...mark, digest: 'not trusted' }));
  }

  private async refuseForeign(name: string): Promise<void> {
    if (isOurName(name) || (await this.markOf(name)) !== null || !(await exists(this.pathOf(name)))) return;
    throw new AppError(
      'conflict',
      `folder ${name} in the model repository was not made by Perch; move it away or name the model differently`,
      { terminal: true },
    );
  }

  private async build(
    aside: string,
    model: DesiredModel,
    { config, mark }: { config: string; mark: FolderMark },
    trace: (step: string) => void,
  ): Promise<void> {
    await mkdir(join(aside, '1'), { recursive: true });
    trace('folder made');
    for (const file of ownFiles(model)) await this.place(aside, file);
    trace('files linked');
    await writeFile(join(aside, configFile), config);
    await writeFile(join(aside, markFile), JSON.stringify(mark));
    trace('configuration written');
  }

  private pathOf(name: string): string {
    const path = resolve(this.folders.repository, name);
    if (dirname(path) !== resolve(this.folders.repository))
      throw new AppError('invalid', `model name ${JSON.stringify(name)} is no folder name`);
    return path;
  }

  private asidePath(name: string): string {
    return join(this.folders.staging, `${name}.${randomBytes(4).toString('hex')}`);
  }

  private async clear(name: string): Promise<void> {
    const trash = this.asidePath(name);
    try {
      await rename(this.pathOf(name), trash);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return;
      throw error;
    }
    await rm(trash, { recursive: true, force: true });
  }

  private async place(aside: string, file: DesiredModel['files'][number]): Promise<void> {
    const source = this.blobs.pathOf(file.sha256);
    const target = join(aside, file.path);
    await mkdir(dirname(target), { recursive: true });
    try {
      await link(source, target);
      return;
    } catch (error) {
      if (!cannotLink.has(errnoOf(error))) throw error;
    }
    await copyFile(source, target, constants.COPYFILE_FICLONE);
    if ((await sha256OfFile(target, file.size)) !== file.sha256)
      throw new AppError('integrity', `integrity: the copy of ${file.path} differs from its blob ${file.sha256}`);
    const signature = await signatureOf(target);
    if (signature) this.copies.set(target, signature);
  }

  private moveCopy(from: string, to: string): void {
    const copy = this.copies.get(from);
    if (!copy) return;
    this.copies.delete(from);
    this.copies.set(to, copy);
  }

  private async isFileIntact(path: string, file: DesiredModel['files'][number]): Promise<boolean> {
    const info = await lstat(path).catch(() => undefined);
    if (!info?.isFile() || info.size !== file.size) return false;
    const blob = this.blobs.provenFile(file.sha256);
    if (blob && info.ino === blob.ino && info.dev === blob.dev) return true;
    const copy = this.copies.get(path);
    return copy !== undefined && sameFile(copy, info);
  }

  private async markOf(name: string): Promise<FolderMark | null> {
    const path = join(this.pathOf(name), markFile);
    const info = await lstat(path).catch(() => undefined);
    const seen = info ? `${info.ino} ${info.mtimeMs} ${info.size}` : 'none';
    const known = this.marks.get(name);
    if (known?.seen === seen) return known.mark;
    const fresh = info ? await readMark(path) : null;
    this.marks.set(name, { seen, mark: fresh });
    return fresh;
  }
}

/** A folder for staging from which a rename into the repository works: in the data folder, else beside or inside the repository. */
export async function chooseStaging(dataFolder: string, repository: string): Promise<string> {
  await mkdir(repository, { recursive: true });
  const last = join(repository, '.perch-staging');
  for (const staging of [join(dataFolder, 'staging'), `${resolve(repository)}.perch-staging`]) {
    if (await canRename(staging, repository)) return staging;
  }
  return last;
}

async function canRename(staging: string, repository: string): Promise<boolean> {
  const name = `.perch-probe-${randomBytes(4).toString('hex')}`;
  try {
    await mkdir(join(staging, name), { recursive: true });
    await rename(join(staging, name), join(repository, name));
    return true;
  } catch {
    return false;
  } finally {
    await rm(join(staging, name), { recursive: true, force: true });
    await rm(join(repository, name), { recursive: true, force: true });
    await rmdir(staging).catch(() => undefined); // made again when it is the one chosen
  }
}
