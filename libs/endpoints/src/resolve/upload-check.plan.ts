import type { ManifestFile, Signature } from '@perch/contracts';
import { backendOf, baseName, folderOf } from './artifact.plan.ts';
import { partsOf } from './ensemble.plan.ts';
import { graphFaults } from './graph.plan.ts';
import { isTritonFolder } from './layout.plan.ts';
import type { ConfigSight } from './version.source.ts';

/** A configuration text of a version, and the folder of the model it belongs to: empty, or with a slash at its end. */
export interface ConfigFile {
  path: string;
  folder: string;
}

/** The texts that some server would read: `config.pbtxt` at the top, or of each model folder, and those kept beside it. */
export function configFiles(files: readonly ManifestFile[]): ConfigFile[] {
  const folders = partsOf(files)?.map(({ name }) => `${name}/`) ?? [''];
  const belongs = (path: string, folder: string) =>
    path === `${folder}config.pbtxt` || (path.startsWith(`${folder}configs/`) && path.endsWith('.pbtxt'));
  return folders.flatMap((folder) =>
    files.filter(({ path }) => belongs(path, folder)).map(({ path }) => ({ path, folder })),
  );
}

/** Names of the files below one model's folder, and of those in its version directory. */
interface Held {
  all: Set<string>;
  inside: string[];
}

function held(files: readonly ManifestFile[], folder: string): Held {
  const below = files
    .filter(({ path }) => path.startsWith(folder))
    .map((file) => ({ ...file, path: file.path.slice(folder.length) }));
  const paths = below.map(({ path }) => path);
  const directory = /^[1-9][0-9]*\//;
  const inside = isTritonFolder(below)
    ? paths.filter((path) => directory.test(path)).map((path) => path.replace(directory, ''))
    : paths;
  return { all: new Set(paths), inside };
}

/** The graph that a configuration is about: the file it names, else the usual one, else the only one. */
function graphOf(folder: string, sight: ConfigSight, graphs: ReadonlyMap<string, Signature>): Signature | undefined {
  if (sight.platform !== undefined && backendOf(sight.platform) !== 'onnxruntime') return undefined;
  const own = [...graphs].filter(
    ([path]) => path.startsWith(folder) && /^([1-9][0-9]*\/)?[^/]+(\/[^/]+)?$/.test(path.slice(folder.length)),
  );
  const name = sight.defaultModelFilename ?? 'model.onnx';
  const named = own.filter(([path]) => baseName(path) === name);
  const [only] = named.length === 1 ? named : own.length === 1 ? own : [];
  return only?.[1];
}

/**
 * What is wrong with a configuration beside its text: files it names and the upload lacks, and a graph that it
 * contradicts. Each fault says what to do.
 */
export function configFileFaults(
  { folder }: ConfigFile,
  sight: ConfigSight,
  files: readonly ManifestFile[],
  graphs: ReadonlyMap<string, Signature>,
): string[] {
  const { all, inside } = held(files, folder);
  const lacks = (path: string) => `names ${path}, which is not in the upload; add it, or take its name out`;
  const beside = (sight.namedFiles ?? []).filter((path) => !all.has(path)).map(lacks);
  const models = [...new Set([sight.defaultModelFilename, ...Object.values(sight.ccModelFilenames ?? {})])]
    .filter((name): name is string => Boolean(name))
    .filter(
      (name) =>
        !inside.some((path) => path === name || folderOf(path).startsWith(`${name}/`) || baseName(path) === name),
    )
    .map(lacks);
  const graph = graphOf(folder, sight, graphs);
  const wrong = graph
    ? graphFaults(
        {
          maxBatchSize: sight.maxBatchSize ?? 0,
          ...(sight.declaresInputs ? { inputs: sight.inputs } : {}),
          ...(sight.declaresOutputs ? { outputs: sight.outputs } : {}),
        },
        graph,
      )
    : [];
  return [...beside, ...models, ...wrong];
}
