import type { EngineSpec, FileFacts, ManifestFile } from '@perch/contracts';
import { artifacts, baseName } from './artifact.plan.ts';
import { LayoutFault } from './layout-fault.ts';

/** Plans of one TensorRT version: servers pick theirs by the compute capability of their GPU. */
export interface PlanGroup {
  /** `major.minor.patch` */
  version: string;
  /** The GPUs these plans were built for; empty: any. */
  computeCapabilities: string[];
  /** Paths as the version has them. */
  paths: string[];
  /** Compute capability → file name; null: one plan, under the usual name. */
  ccModelFilenames: Record<string, string> | null;
}

/** What is known of plans beside their bytes. */
export interface PlanSources {
  engine: EngineSpec;
  facts: FileFacts | null;
  metadata: Readonly<Record<string, string>>;
  /** Compute capability → file name, as the configuration text says. */
  byText: Readonly<Record<string, string>>;
}

/** `model.cc86.plan`, `net_sm_8.6.engine`, `x-sm120.plan` */
const inName = /(?:^|[._-])(?:cc|sm)[._-]?(\d{1,2})[._]?(\d)(?=[._-])/i;
export const capabilityInName = (path: string): string | null => {
  const found = inName.exec(baseName(path));
  return found ? `${Number(found[1])}.${found[2]}` : null;
};

const threeParts = (version: string) => version.split('.').slice(0, 3).join('.');
const agree = (a: string, b: string) => a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`);

function versionOf(path: string, { engine, facts, metadata }: PlanSources): string {
  const read = facts?.tensorrt?.[path]?.version ?? null;
  const given = engine.tensorrt?.version ?? metadata['tensorrt.version'];
  if (read !== null && given !== undefined && !agree(read, given))
    throw new LayoutFault(
      `${path} was built by TensorRT ${read} and not by ${given} as was said; leave the version out`,
    );
  const version = read ?? given;
  if (version === undefined)
    throw new LayoutFault(
      `${path} does not tell which TensorRT built it, and a plan runs on no other: give engine.tensorrt.version (or metadata tensorrt.version with the version)`,
    );
  return threeParts(version);
}

function declaredCapabilities({ engine, metadata }: PlanSources): string[] | undefined {
  const given = engine.tensorrt?.computeCapability ?? metadata['cuda.computeCapability']?.split(/[,\s]+/);
  if (given === undefined) return undefined;
  const list = typeof given === 'string' ? [given] : given;
  return list.includes('any') ? [] : list;
}

/**
 * Which plans a version holds and where they run. One plan wants its compute capability from its name, the settings or
 * the version's metadata; of several each must tell its own. Throws `LayoutFault` with what to give.
 */
export function planTensorrt(files: readonly ManifestFile[], sources: PlanSources): PlanGroup[] {
  const all = files.map(({ path }) => path).filter((path) => artifacts['tensorrt_plan']!.pattern.test(path));
  const named = sources.engine.defaultModelFilename;
  const chosen = named === undefined ? all : all.filter((path) => baseName(path) === named);
  const paths = chosen.length > 0 ? chosen : all;
  const byName = { ...sources.byText, ...sources.engine.ccModelFilenames };
  if (paths.length === 0 && files.length === 1) paths.push(files[0]!.path);
  const [only] = paths;
  if (only === undefined) throw new LayoutFault(`no TensorRT plan among ${files.length} files`);
  if (paths.length === 1 && Object.keys(byName).length === 0) {
    const own = capabilityInName(only);
    const capabilities = own ? [own] : declaredCapabilities(sources);
    if (!capabilities)
      throw new LayoutFault(
        `${only} does not tell the GPU it was built for: give engine.tensorrt.computeCapability such as "8.6" or "any" (or metadata cuda.computeCapability with the version, or name it model.cc86.plan)`,
      );
    return [
      { version: versionOf(only, sources), computeCapabilities: capabilities, paths: [only], ccModelFilenames: null },
    ];
  }
  return groupPlans(paths, byName, sources);
}

function groupPlans(
  paths: readonly string[],
  byName: Readonly<Record<string, string>>,
  sources: PlanSources,
): PlanGroup[] {
  const groups = new Map<string, PlanGroup>();
  for (const name of Object.values(byName))
    if (!paths.some((path) => baseName(path) === name))
      throw new LayoutFault(`ccModelFilenames names ${name}, which the version lacks`);
  for (const path of [...paths].sort()) {
    const name = baseName(path);
    const said = Object.entries(byName).find(([, file]) => file === name)?.[0];
    const capability = said ?? capabilityInName(path);
    // The usual name beside plans for named GPUs is for any other GPU; which ones it fits nobody can tell.
    if (capability === null && name === artifacts['tensorrt_plan']!.name) continue;
    if (capability === null)
      throw new LayoutFault(
        `${paths.length} plans, and ${path} does not tell the GPU it was built for: name it model.cc86.plan, give engine.ccModelFilenames, or choose one with engine.defaultModelFilename`,
      );
    const version = versionOf(path, sources);
    const group = groups.get(version) ?? { version, computeCapabilities: [], paths: [], ccModelFilenames: {} };
    const other = group.ccModelFilenames![capability];
    if (other !== undefined)
      throw new LayoutFault(`${other} and ${name} are both for compute capability ${capability}; keep one of them`);
    group.computeCapabilities.push(capability);
    group.paths.push(path);
    group.ccModelFilenames![capability] = name;
    groups.set(version, group);
  }
  return [...groups.values()].sort((a, b) => byVersion(b.version, a.version));
}

/** Newest TensorRT first: where a server could run either, it gets the newer plan. */
function byVersion(a: string, b: string): number {
  const [x, y] = [a, b].map((version) => version.split('.').map(Number)) as [number[], number[]];
  return x.map((part, n) => part - (y[n] ?? 0)).find((difference) => difference !== 0) ?? 0;
}
