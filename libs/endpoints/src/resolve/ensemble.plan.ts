import type { ManifestFile } from '@perch/contracts';
import { LayoutFault } from './layout.plan.ts';
import type { ConfigSight } from './version.source.ts';

/** One of several Triton model folders that a version holds. */
export interface Part {
  name: string;
  /** Paths below the folder. */
  files: ManifestFile[];
  config: ManifestFile | null;
}

export interface PartSight {
  name: string;
  /** Numbers of its version folders. */
  versions: readonly number[];
  /** Null: it has no config.pbtxt. */
  sight: ConfigSight | null;
}

export interface EnsemblePlan {
  /** The part that is served. */
  main: string;
  /** The parts to resolve, each after all that it steps into; the last one is `main`. */
  order: string[];
}

const firstFolder = /^([^/]+)\/(.+)$/;
const versionFolder = /^([1-9][0-9]*)\//;

/**
 * The model folders of a version; null when it is laid out as one model: files or version folders stand at its top, or
 * no folder has a config.pbtxt. Files beside the folders (a README) belong to no part.
 */
export function partsOf(files: readonly ManifestFile[]): Part[] | null {
  if (files.some(({ path }) => path === 'config.pbtxt' || versionFolder.test(path))) return null;
  const folders = new Map<string, ManifestFile[]>();
  for (const file of files) {
    const [, folder, path] = firstFolder.exec(file.path) ?? [];
    if (folder && path) folders.set(folder, [...(folders.get(folder) ?? []), { ...file, path }]);
  }
  const parts = [...folders]
    .map(([name, own]) => ({ name, files: own, config: own.find(({ path }) => path === 'config.pbtxt') ?? null }))
    .filter(({ config, files: own }) => config !== null || own.some(({ path }) => versionFolder.test(path)));
  return parts.some(({ config }) => config !== null) ? parts.sort((a, b) => (a.name < b.name ? -1 : 1)) : null;
}

/** Numbers of the version folders among these files. */
export const versionFoldersOf = (files: readonly ManifestFile[]): number[] => [
  ...new Set(files.flatMap(({ path }) => versionFolder.exec(path)?.[1] ?? []).map(Number)),
];

/**
 * Which folder is served, and in which order all are resolved. `wanted`: the folder that the endpoint names. `outside`:
 * names that stand for other Perch models. Throws `LayoutFault` for an unknown step, a circle, several candidates, and
 * folders that nothing leads to.
 */
export function planEnsemble(
  parts: readonly PartSight[],
  wanted: string | undefined,
  outside: ReadonlySet<string>,
): EnsemblePlan {
  const byName = new Map(parts.map((part) => [part.name, part]));
  for (const part of parts) checkSteps(part, byName, outside);
  const main = wanted === undefined ? pickMain(parts) : wanted;
  if (!byName.has(main))
    throw new LayoutFault(`engine.folder ${main}: the version holds ${listed(parts)}; name one of them`);
  const order: string[] = [];
  visit(main, byName, [], order);
  const left = parts.filter(({ name }) => !order.includes(name));
  if (left.length > 0 && wanted === undefined)
    throw new LayoutFault(
      `no step of ${main} leads to ${listed(left)}; upload what only code calls as a model of its own and name it in uses`,
    );
  return { main, order };
}

const listed = (parts: readonly { name: string }[]) => parts.map(({ name }) => name).join(', ');

const stepsOf = (part: PartSight) => part.sight?.steps ?? [];

function checkSteps(part: PartSight, byName: ReadonlyMap<string, PartSight>, outside: ReadonlySet<string>): void {
  for (const { model, version } of stepsOf(part)) {
    if (outside.has(model)) continue;
    const other = byName.get(model);
    if (!other)
      throw new LayoutFault(
        `ensemble ${part.name} steps into ${model}, which is no folder of the version (${listed([...byName.values()])}) and not named in uses`,
      );
    if (version > 0 && other.versions.length > 0 && !other.versions.includes(version))
      throw new LayoutFault(
        `ensemble ${part.name} steps into version ${version} of ${model}, of which the version holds ${other.versions.join(', ')}`,
      );
  }
}

/** The one ensemble that no other steps into; without any ensemble, the one folder that nobody steps into. */
function pickMain(parts: readonly PartSight[]): string {
  const stepped = new Set(parts.flatMap((part) => stepsOf(part).map(({ model }) => model)));
  const roots = parts.filter(({ name }) => !stepped.has(name));
  const ensembles = roots.filter(({ sight }) => sight?.steps !== undefined);
  const candidates = ensembles.length > 0 ? ensembles : roots;
  if (candidates.length === 1) return candidates[0]!.name;
  if (candidates.length === 0) visitAll(parts);
  throw new LayoutFault(`holds the model folders ${listed(candidates)}; say which one is served with engine.folder`);
}

/** Nobody is without somebody who steps into it, so there is a circle. */
function visitAll(parts: readonly PartSight[]): void {
  const byName = new Map(parts.map((part) => [part.name, part]));
  for (const { name } of parts) visit(name, byName, [], []);
}

function visit(name: string, byName: ReadonlyMap<string, PartSight>, path: readonly string[], order: string[]): void {
  if (path.includes(name))
    throw new LayoutFault(`the ensembles step into one another in a circle: ${[...path, name].join(' -> ')}`);
  if (order.includes(name)) return;
  for (const { model } of stepsOf(byName.get(name)!))
    if (byName.has(model)) visit(model, byName, [...path, name], order);
  order.push(name);
}
