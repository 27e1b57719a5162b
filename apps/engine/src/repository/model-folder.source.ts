import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, canonicalJson } from '@perch/contracts';
import { type ModelConfig, parseModelConfig, validateModelConfig, writeModelConfig } from '@perch/triton/control';
import { versionOf } from './version.plan.ts';

/** What lies in one model's folder now. */
export interface ModelFolder {
  folder: string;
  /** With the name set; inputs and outputs may still be missing. */
  config: ModelConfig;
  /** By version: its folder and the newest change below it. */
  versions: Map<string, { folder: string; newestMs: number }>;
  /** The newest change anywhere below the model's folder: the later of modification and status change. */
  newestMs: number;
}

async function newestBelow(path: string): Promise<number> {
  const { mtimeMs, ctimeMs, isDirectory } = await stat(path).then((s) => ({
    mtimeMs: s.mtimeMs,
    ctimeMs: s.ctimeMs,
    isDirectory: s.isDirectory(),
  }));
  const own = Math.max(mtimeMs, ctimeMs);
  if (!isDirectory) return own;
  const below = await Promise.all((await readdir(path)).map((name) => newestBelow(join(path, name))));
  return Math.max(own, ...below);
}

/** Names of the folders below the repository; each counts as a model, also one that begins with a dot. */
export async function modelNames(repository: string): Promise<string[]> {
  const entries = await readdir(repository, { withFileTypes: true });
  const folders = await Promise.all(
    entries.map(async (entry) => {
      if (entry.isDirectory()) return entry.name;
      if (!entry.isSymbolicLink()) return undefined;
      const linked = await stat(join(repository, entry.name)).catch(() => undefined);
      return linked?.isDirectory() ? entry.name : undefined;
    }),
  );
  return folders.filter((name) => name !== undefined).sort();
}

function checkName(name: string): void {
  if (name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name))
    throw new AppError('invalid', `"${name}" is no model name`);
}

/** The newest change below a model's folder; undefined when there is no such folder. */
export async function newestOf(repository: string, name: string): Promise<number | undefined> {
  checkName(name);
  const folder = join(repository, name);
  return existsSync(folder) ? newestBelow(folder) : undefined;
}

/** Configuration from the JSON of a load request; written and read again, so that it is checked like a file. */
function configOfJson(json: string): ModelConfig {
  const value = JSON.parse(json) as ModelConfig;
  return parseModelConfig(writeModelConfig(value), 'the config parameter');
}

/**
 * Reads a model's folder; throws in plain words when there is none or its configuration is bad. `override` is the JSON
 * of a load request, used in place of config.pbtxt.
 */
export async function readModelFolder(repository: string, name: string, override?: string): Promise<ModelFolder> {
  const newestMs = await newestOf(repository, name);
  if (newestMs === undefined) throw new AppError('not_found', `there is no folder ${name} in the repository`);
  const folder = join(repository, name);
  const file = join(folder, 'config.pbtxt');
  const versions: ModelFolder['versions'] = new Map();
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const version = versionOf(entry.name);
    if (version === undefined || entry.isFile()) continue;
    versions.set(version, { folder: join(folder, entry.name), newestMs: await newestBelow(join(folder, entry.name)) });
  }
  let config: ModelConfig = {};
  if (override !== undefined) config = configOfJson(override);
  else if (existsSync(file)) config = parseModelConfig(await readFile(file, 'utf8'));
  else if (![...versions.values()].some((version) => existsSync(join(version.folder, 'model.onnx'))))
    throw new AppError('invalid', `${name} has neither a config.pbtxt nor a version with a model.onnx`);
  if (config.name && config.name !== name)
    throw new AppError(
      'invalid',
      `unexpected directory name '${name}' for model '${config.name}', directory name must equal model name`,
    );
  validateModelConfig(config, `config.pbtxt of ${name}`);
  return { folder, config: { ...config, name }, versions, newestMs };
}

/** Two texts are equal exactly when the configurations mean the same for a version that is already loaded. */
export const configIdentity = ({ version_policy: _policy, ...rest }: ModelConfig): string => canonicalJson(rest);
