import { lstat, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { AppError, bundlePath } from '@perch/contracts';
import { type FoundFile, findFiles } from '../upload/manifest.source.ts';
import { isRecording } from './fixture.plan.ts';

/** A module as it lies on this computer. */
export interface ModuleFolder {
  /** Folder of the code; paths in messages are relative to it. */
  root: string;
  entry: string;
  /** Requests with their wanted replies, and what these need: `fixtures/…`. */
  fixtures: FoundFile[];
  /** What `load` may open, by its path there. */
  files: FoundFile[];
  /** Packages that its package.json lists: these may be bundled. */
  packages: Set<string>;
}

const entries = ['module.ts', 'index.ts', 'module.mts', 'module.js', 'module.mjs', 'index.js'];
const code = /\.(ts|mts|cts|tsx|js|mjs|cjs|jsx|map|py)$/;
const never = /(^|\/)(node_modules|dist|\.[^/]*)(\/|$)/;
const about = /(^|\/)(package(-lock)?\.json|tsconfig[\w.]*\.json|README[\w.]*|LICENSE[\w.]*)$/i;

/** Throws `not_found` where nothing is, `invalid` for a folder without an entry. */
export async function findModule(place: string): Promise<ModuleFolder> {
  const real = await realpath(place).catch(() => {
    throw new AppError('not_found', `${place}: no such file or folder; wanted a module.ts, or the folder of one`);
  });
  const whole = (await lstat(real)).isDirectory();
  const root = whole ? real : dirname(real);
  const entry = whole ? await entryOf(real, place) : real;
  if (!/\.(ts|mts|js|mjs)$/.test(entry))
    throw new AppError(
      'invalid',
      `${place} is no TypeScript file; a module is written in TypeScript (perch processing new DIR)`,
    );
  const files = (await isFolder(join(root, 'files')))
    ? await filesBelow(join(root, 'files'))
    : whole
      ? (await filesBelow(root)).filter(({ path }) => isData(path))
      : [];
  if (files.some(({ path }) => path === bundlePath))
    throw new AppError('invalid', `${place}: ${bundlePath} is the name of the bundle; give the file another name`);
  const fixtures = (await isFolder(join(root, 'fixtures'))) ? await filesBelow(join(root, 'fixtures'), 'fixtures') : [];
  return {
    root,
    entry,
    files,
    fixtures: fixtures.filter(({ path }) => !isRecording(path)),
    packages: await listed(root),
  };
}

async function entryOf(folder: string, place: string): Promise<string> {
  for (const name of entries) if (await isFile(join(folder, name))) return join(folder, name);
  throw new AppError('invalid', `${place} holds no module.ts or index.ts; perch processing new ${place} writes one`);
}

const isData = (path: string): boolean =>
  !path.startsWith('fixtures/') && !code.test(path) && !never.test(path) && !about.test(path);

async function filesBelow(folder: string, as?: string): Promise<FoundFile[]> {
  const holds = await isEmptyFolder(folder);
  return holds ? [] : (await findFiles(folder, as)).files;
}

const isEmptyFolder = async (folder: string) =>
  (await import('node:fs/promises')).readdir(folder).then((names) => names.length === 0);
const kindOf = (path: string) => lstat(path).catch(() => undefined);
const isFile = async (path: string) => (await kindOf(path))?.isFile() ?? false;
const isFolder = async (path: string) => (await kindOf(path))?.isDirectory() ?? false;

async function listed(root: string): Promise<Set<string>> {
  const text = await readFile(join(root, 'package.json'), 'utf8').catch(() => '{}');
  try {
    return new Set(Object.keys((JSON.parse(text) as { dependencies?: object }).dependencies ?? {}));
  } catch (error) {
    throw new AppError('invalid', `package.json: is no JSON: ${(error as Error).message}`);
  }
}

/** `sentiment.ts` and `sentiment/module.ts` are both called `sentiment` where no name was given. */
export const nameOfPlace = ({ root, entry }: ModuleFolder): string =>
  (entries.includes(basename(entry)) ? basename(root) : basename(entry).replace(/\.\w+$/, '')).toLowerCase();

export const pathIn = (root: string, file: string): string => relative(root, file) || basename(file);
