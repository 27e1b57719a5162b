import { lstat, readdir, readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { AppError, type ConfigFacts, type ConfigsRead } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { type FoundFile, findFiles } from './manifest.source.ts';
import { calledModels, type RepositoryFolder, versionNumberOf } from './triton-folder.plan.ts';

/** A model folder with its files as they lie on this computer. */
export interface ScannedFolder extends RepositoryFolder {
  found: FoundFile[];
}

export interface ScannedRepository {
  folders: ScannedFolder[];
  notes: string[];
}

const textsAtOnce = 50;
const mostTextBytes = 262_144;
const mostCodeBytes = 1_048_576;

const subfolders = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .sort();

async function isModelFolder(folder: string): Promise<boolean> {
  if (await isFile(join(folder, 'config.pbtxt'))) return true;
  return (await subfolders(folder)).some((name) => versionNumberOf(name) !== undefined);
}

const isFile = (path: string): Promise<boolean> =>
  lstat(path).then(
    (info) => info.isFile(),
    () => false,
  );

/**
 * The model folders of a Triton repository, of one model folder, or of a folder that an export wrote. Throws `invalid`
 * with all faults: no repository, texts that cannot be read (line and column), links.
 */
export async function scanRepository(client: AdminClient, place: string): Promise<ScannedRepository> {
  const { folders, notes } = await modelFolders(place);
  const texts = await configsOf(folders);
  const facts = await readFacts(client, texts);
  const scanned: ScannedFolder[] = [];
  for (const folder of folders) scanned.push(await scanFolder(folder, facts, notes));
  return { folders: scanned, notes };
}

async function modelFolders(place: string): Promise<{ folders: string[]; notes: string[] }> {
  const root = resolve(place);
  const info = await lstat(root).catch(() => undefined);
  if (!info) throw new AppError('not_found', `${place}: no such folder`);
  if (!info.isDirectory()) throw new AppError('invalid', `${place} is a file; a Triton repository is a folder`);
  if (await isModelFolder(root)) return { folders: [root], notes: [] };
  const inside = await sortFolders(root);
  if (inside.models.length > 0) return { folders: inside.models, notes: inside.others.map(leftOut) };
  const exported = join(root, 'models');
  const below = (await lstat(exported).catch(() => undefined))?.isDirectory() ? await sortFolders(exported) : undefined;
  if (below && below.models.length > 0)
    return { folders: below.models, notes: [`${place}/models is the repository`, ...below.others.map(leftOut)] };
  throw new AppError(
    'invalid',
    `${place} is no Triton repository: none of its folders has a config.pbtxt or a version folder (1, 2, …)`,
  );
}

const leftOut = (path: string) => `${basename(path)} is left out: it has neither config.pbtxt nor a version folder`;

async function sortFolders(root: string): Promise<{ models: string[]; others: string[] }> {
  const models: string[] = [];
  const others: string[] = [];
  for (const name of await subfolders(root)) {
    const path = join(root, name);
    ((await isModelFolder(path)) ? models : others).push(path);
  }
  return { models, others };
}

/** Texts by `<folder>/config.pbtxt`. */
async function configsOf(folders: readonly string[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const folder of folders) {
    const path = join(folder, 'config.pbtxt');
    if (!(await isFile(path))) continue;
    const bytes = await readFile(path);
    if (bytes.length > mostTextBytes)
      throw new AppError('invalid', `${path} has ${bytes.length} bytes; a configuration has at most ${mostTextBytes}`);
    texts.set(`${basename(folder)}/config.pbtxt`, bytes.toString('utf8'));
  }
  return texts;
}

async function readFacts(client: AdminClient, texts: ReadonlyMap<string, string>): Promise<Map<string, ConfigFacts>> {
  const facts = new Map<string, ConfigFacts>();
  const faults: string[] = [];
  const entries = [...texts];
  for (let at = 0; at < entries.length; at += textsAtOnce) {
    const body = { texts: Object.fromEntries(entries.slice(at, at + textsAtOnce)) };
    const { configs } = await client.call<ConfigsRead>('/configs/read', { method: 'POST', body, once: false });
    for (const [name, { facts: read, fault }] of Object.entries(configs)) {
      if (read) facts.set(name, read);
      else faults.push(fault ?? `${name} cannot be read`);
    }
  }
  if (faults.length > 0) throw importFault(faults);
  return facts;
}

/** The first faults in words, all of them as details. */
export const importFault = (faults: readonly string[]): AppError =>
  new AppError('invalid', faults.slice(0, 3).join('; '), {
    details: { errors: faults.map((message) => ({ path: message.split(' ')[0]!, message })) },
  });

async function scanFolder(
  folder: string,
  facts: ReadonlyMap<string, ConfigFacts>,
  notes: string[],
): Promise<ScannedFolder> {
  const name = basename(folder);
  const { files: found, skipped } = await findFiles(folder);
  if (skipped.length > 0) notes.push(`${name}: left out: ${[...new Set(skipped)].join(', ')}`);
  const inside = await subfolders(folder);
  const calls: string[] = [];
  for (const { path, file, size } of found)
    if (/^\d+\/.*\.py$/.test(path) && size <= mostCodeBytes) calls.push(...calledModels(await readFile(file, 'utf8')));
  return {
    name,
    found,
    files: found.map(({ path }) => path),
    versions: inside.map(versionNumberOf).filter((version) => version !== undefined),
    oddVersions: inside.filter((inner) => /^\d/.test(inner) && versionNumberOf(inner) === undefined),
    config: facts.get(`${name}/config.pbtxt`) ?? null,
    calls: [...new Set(calls)],
  };
}
