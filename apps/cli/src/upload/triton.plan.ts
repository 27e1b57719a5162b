import type { ConfigFacts, VersionUses } from '@perch/contracts';
import { modelName } from '@perch/contracts';
import { pinnedVersion, type RepositoryFolder, stepsInto } from './triton-folder.plan.ts';

/** One file and its place in a version. */
export interface PlacedFile {
  from: string;
  folder: string;
  to: string;
}

export interface ImportedVersion {
  /** The number of its folder in the repository. */
  folder: number;
  files: PlacedFile[];
  /** Triton would serve it: one that `specific` leaves out stays a draft. */
  served: boolean;
}

/** One Perch model to be made of one or more model folders. */
export interface ImportedModel {
  name: string;
  folder: string;
  versions: ImportedVersion[];
  /** How many versions Triton would serve at once. */
  maxVersions: number;
  /** By the names of folders; what the code of a Python model calls. */
  uses: VersionUses;
  ensemble: boolean;
}

export interface ImportPlan {
  /** In an order in which what is used comes before what uses it. */
  models: ImportedModel[];
  notes: string[];
  faults: string[];
}

export interface ImportNaming {
  project: string;
  /** Perch names of folders; others keep their own. */
  names: Readonly<Record<string, string>>;
}

const mostVersions = 64;

/** What is to be made of the folders of a repository; `faults` non-empty: nothing may be done. */
export function planTritonImport(folders: readonly RepositoryFolder[], naming: ImportNaming): ImportPlan {
  const plan: ImportPlan = { models: [], notes: [], faults: [] };
  const byName = new Map(folders.map((folder) => [folder.name, folder]));
  for (const folder of folders) checkFolder(folder, byName, plan);
  if (plan.faults.length > 0) return plan;
  const called = new Set(folders.flatMap((folder) => folder.calls).filter((name) => byName.has(name)));
  const stepped = new Set(folders.flatMap(stepsInto));
  const roots = folders.filter(({ name }) => !stepped.has(name) || called.has(name));
  if (roots.length === 0)
    plan.faults.push(`the ensembles ${folders.map(({ name }) => name).join(', ')} step into one another in a circle`);
  for (const root of roots) {
    const model = root.config?.steps ? ensembleOf(root, byName, plan) : plainModel(root, plan);
    if (model)
      plan.models.push({
        ...model,
        ...named(root.name, naming, plan),
        uses: usesOf(root, model, byName, naming, plan),
      });
  }
  plan.models = usedFirst(plan.models, naming);
  return plan;
}

function named(folder: string, { names }: ImportNaming, plan: ImportPlan): { name: string } {
  const name = names[folder] ?? folder;
  if (!modelName.safeParse(name).success)
    plan.faults.push(`${folder}: "${name}" is no name for a model; give one with --name ${folder}=…`);
  return { name };
}

function checkFolder(folder: RepositoryFolder, byName: ReadonlyMap<string, RepositoryFolder>, plan: ImportPlan): void {
  const { name, config, versions } = folder;
  if (config?.name && config.name !== name)
    plan.faults.push(`${name}/config.pbtxt has the name "${config.name}"; Triton wants that of its folder`);
  if (versions.length === 0 && !config?.steps)
    plan.faults.push(`${name} has no version folder (1, 2, …), so there is nothing to serve in it`);
  for (const { model } of config?.steps ?? [])
    if (!byName.has(model)) plan.faults.push(`ensemble ${name} steps into ${model}, which is not in the repository`);
  const environment = config?.parameters['EXECUTION_ENV_PATH'];
  if (environment) checkEnvironment(folder, environment, plan);
  for (const ignored of folder.oddVersions)
    plan.notes.push(
      `${name}/${ignored}: no version folder for Triton (a plain number without leading zero); kept as a folder beside them`,
    );
}

/** Path of an archive inside the model folder; null: it lies elsewhere. */
const archiveIn = (value: string): string | null => /^\$\$TRITON_MODEL_DIRECTORY\/(.+)$/.exec(value)?.[1] ?? null;

function checkEnvironment({ name, files }: RepositoryFolder, value: string, plan: ImportPlan): void {
  const path = archiveIn(value);
  if (path === null)
    plan.notes.push(
      `${name}: EXECUTION_ENV_PATH ${value} lies outside of the model folder, so it must be on every server; put it into the folder and write $$TRITON_MODEL_DIRECTORY/<file> to have it come along`,
    );
  else if (!files.includes(path)) plan.faults.push(`${name}: EXECUTION_ENV_PATH names ${path}, which is not there`);
}

const versionOf = (path: string): number | undefined => {
  const digits = /^([1-9]\d*)\//.exec(path)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

/** Files of a folder that belong to one version: its own, and those beside the version folders. */
function filesOf({ name, files }: RepositoryFolder, version: number | undefined, prefix: string): PlacedFile[] {
  return files
    .filter((path) => versionOf(path) === undefined || versionOf(path) === version)
    .map((path) => ({ from: path, folder: name, to: `${prefix}${path}` }));
}

type Draft = Omit<ImportedModel, 'name' | 'uses'>;

function plainModel(folder: RepositoryFolder, plan: ImportPlan): Draft | undefined {
  const { name, versions, config } = folder;
  const { served, maxVersions } = servedOf(name, versions, config?.versionPolicy ?? null, plan);
  if (served.length === 0) return undefined;
  return {
    folder: name,
    maxVersions,
    ensemble: false,
    versions: [...versions]
      .sort((a, b) => a - b)
      .map((version) => ({ folder: version, files: filesOf(folder, version, ''), served: served.includes(version) })),
  };
}

/** A version_policy is translated and said, never dropped. */
function servedOf(
  name: string,
  versions: readonly number[],
  policy: ConfigFacts['versionPolicy'],
  plan: ImportPlan,
): { served: number[]; maxVersions: number } {
  const all = [...versions];
  const capped = Math.min(all.length, mostVersions);
  if (!policy) return { served: all, maxVersions: 1 };
  if (policy.kind === 'latest') {
    if (policy.count > 1)
      plan.notes.push(`${name}: version_policy latest ${policy.count} becomes maxVersions ${policy.count}`);
    if (policy.count > mostVersions)
      plan.faults.push(`${name}: version_policy latest ${policy.count}: maxVersions is at most ${mostVersions}`);
    return { served: all, maxVersions: policy.count };
  }
  if (policy.kind === 'all') {
    if (all.length > mostVersions)
      plan.faults.push(
        `${name}: version_policy all with ${all.length} versions: maxVersions is at most ${mostVersions}`,
      );
    plan.notes.push(
      `${name}: version_policy all becomes maxVersions ${capped}, as many as there are now; raise it as you add versions`,
    );
    return { served: all, maxVersions: capped };
  }
  const served = policy.versions.filter((version) => all.includes(version));
  if (served.length === 0)
    plan.faults.push(
      `${name}: version_policy specific names ${policy.versions.join(', ')}, and the folder holds ${all.join(', ')}`,
    );
  const left = all.filter((version) => !served.includes(version));
  plan.notes.push(
    `${name}: version_policy specific ${served.join(', ')} becomes maxVersions ${served.length}${left.length > 0 ? `; ${left.join(', ')} stay drafts` : ''}`,
  );
  return { served, maxVersions: Math.max(1, served.length) };
}

/** The ensemble and all that it steps into, as one version with a folder each. */
function ensembleOf(
  root: RepositoryFolder,
  byName: ReadonlyMap<string, RepositoryFolder>,
  plan: ImportPlan,
): Draft | undefined {
  const members = new Map<string, RepositoryFolder>();
  const visit = (folder: RepositoryFolder, path: readonly string[]): boolean => {
    if (path.includes(folder.name)) {
      plan.faults.push(`the ensembles step into one another in a circle: ${[...path, folder.name].join(' -> ')}`);
      return false;
    }
    members.set(folder.name, folder);
    return stepsInto(folder).every((step) => visit(byName.get(step)!, [...path, folder.name]));
  };
  if (!visit(root, [])) return undefined;
  const files = [...members.values()].flatMap((member) => {
    const version = memberVersion(member, [...members.values()], plan);
    return filesOf(member, version, `${member.name}/`);
  });
  const policy = root.config?.versionPolicy;
  const maxVersions = policy?.kind === 'latest' ? policy.count : 1;
  if (policy && (policy.kind !== 'latest' || policy.count > 1))
    plan.notes.push(
      `${root.name}: version_policy ${policy.kind}${policy.kind === 'latest' ? ` ${policy.count}` : ''}: the folders of an ensemble's versions are empty, so there is one version of it here; maxVersions ${maxVersions}`,
    );
  const folder = Math.max(1, ...root.versions);
  return { folder: root.name, versions: [{ folder, files, served: true }], maxVersions, ensemble: true };
}

/** The version that the steps name, else the newest that Triton would serve. */
function memberVersion(
  member: RepositoryFolder,
  members: readonly RepositoryFolder[],
  plan: ImportPlan,
): number | undefined {
  if (member.versions.length === 0) return undefined;
  const pinned = pinnedVersion(member.name, members);
  if (pinned === 'several') {
    plan.faults.push(`the steps of one ensemble name several versions of ${member.name}; a version holds one of them`);
    return undefined;
  }
  if (pinned !== undefined && !member.versions.includes(pinned)) {
    plan.faults.push(`a step names version ${pinned} of ${member.name}, which has ${member.versions.join(', ')}`);
    return undefined;
  }
  const policy = member.config?.versionPolicy;
  const candidates =
    policy?.kind === 'specific' ? member.versions.filter((one) => policy.versions.includes(one)) : member.versions;
  const version = pinned ?? Math.max(...candidates);
  const left = member.versions.filter((one) => one !== version);
  if (left.length > 0)
    plan.notes.push(
      `${member.name}: version ${version} comes along; ${left.join(', ')} ${left.length === 1 ? 'is' : 'are'} left out, no step leads there`,
    );
  return version;
}

function usesOf(
  root: RepositoryFolder,
  model: Draft,
  byName: ReadonlyMap<string, RepositoryFolder>,
  { project, names }: ImportNaming,
  plan: ImportPlan,
): VersionUses {
  const own = new Set([root.name, ...model.versions.flatMap(({ files }) => files.map(({ folder }) => folder))]);
  const uses: Record<string, { model: string; as: 'literal' }> = {};
  for (const folder of own)
    for (const name of byName.get(folder)!.calls) {
      if (!byName.has(name) || name === root.name) continue;
      uses[name] = { model: `${project}/${names[name] ?? name}`, as: 'literal' };
      plan.notes.push(`${folder}: its code calls ${name}, so ${model.folder} uses ${project}/${names[name] ?? name}`);
    }
  return uses;
}

function usedFirst(models: readonly ImportedModel[], { project }: ImportNaming): ImportedModel[] {
  const ordered: ImportedModel[] = [];
  const visit = (model: ImportedModel, path: readonly ImportedModel[]): void => {
    if (ordered.includes(model) || path.includes(model)) return;
    const used = Object.values(model.uses).map((use) => (typeof use === 'string' ? use : use.model));
    for (const other of models) if (used.includes(`${project}/${other.name}`)) visit(other, [...path, model]);
    ordered.push(model);
  };
  for (const model of models) visit(model, []);
  return ordered;
}
