import { type EngineSpec, isGoldenPath, type ManifestFile, pathFault } from '@perch/contracts';
import { type Artifact, artifacts, baseName, folderOf, guessPlatform, isModelFile, pickMain } from './artifact.plan.ts';
import { LayoutFault } from './layout-fault.ts';
import { namedFiles } from './named-file.plan.ts';

export { LayoutFault } from './layout-fault.ts';

export interface Layout {
  platform: string;
  /** Files below the Triton model's folder, whose one version directory is `1`. */
  files: ManifestFile[];
  defaultModelFilename: string | null;
  /** The version's own config.pbtxt, when it holds one. */
  config: ManifestFile | null;
  /** Path, as the version has it, of the file that is the model; null where the back-end takes a folder. */
  main: string | null;
}

const versionDirectory = /^([1-9][0-9]*)\//;

/** Whether the version is laid out as Triton's repository has it. */
export const isTritonFolder = (files: readonly ManifestFile[]): boolean =>
  files.some(({ path }) => versionDirectory.test(path));

/** The version's own configuration: `config.pbtxt` at the top. */
export const ownConfigFile = (files: readonly ManifestFile[]): ManifestFile | null =>
  files.find(({ path }) => path === 'config.pbtxt') ?? null;

/**
 * Where each file of a version goes in a Triton model folder. A version that holds such a folder already (`1/…`) is
 * taken as it is; otherwise the model file is found by its ending, gets the name its back-end looks for, and what lies
 * beside it (external weights) keeps its name. `named`: paths below the model's folder that a configuration text names.
 * Throws `LayoutFault`.
 */
export function planLayout(all: readonly ManifestFile[], engine: EngineSpec, named: readonly string[] = []): Layout {
  // Golden requests lie beside the version directory: servers look at numbered folders alone, agents ask them.
  const [golden, files] = [all.filter(({ path }) => isGoldenPath(path)), all.filter(({ path }) => !isGoldenPath(path))];
  const wanted = [...new Set([...namedFiles(engine), ...named])];
  const isFolder = isTritonFolder(files) || engine.platform === 'ensemble';
  const layout = isFolder ? tritonFolder(files, engine) : plainFiles(files, engine, wanted);
  for (const { path } of layout.files) {
    const fault = pathFault(path);
    if (fault) throw new LayoutFault(`file ${path}: ${fault}`);
  }
  const missing = wanted.find((path) => !layout.files.some((file) => file.path === path));
  if (missing !== undefined) throw new LayoutFault(`the settings name the file ${missing}, which the version lacks`);
  return { ...layout, files: [...layout.files, ...golden].sort((a, b) => (a.path < b.path ? -1 : 1)) };
}

function tritonFolder(files: readonly ManifestFile[], engine: EngineSpec): Layout {
  const directories = [
    ...new Set(files.map(({ path }) => versionDirectory.exec(path)?.[1]).filter((n) => n !== undefined)),
  ];
  if (directories.length > 1)
    throw new LayoutFault(`holds the version directories ${directories.join(', ')}; a version holds one of them`);
  // An ensemble's version directory is empty, and empty folders are in no manifest.
  const directory = `${directories[0] ?? 1}/`;
  const config = ownConfigFile(files);
  const moved = files
    .filter((file) => file !== config)
    .map((file) =>
      file.path.startsWith(directory) ? { ...file, path: `1/${file.path.slice(directory.length)}` } : file,
    );
  const platform = engine.platform ?? (config ? '' : guessPlatform(files));
  return {
    platform,
    files: moved,
    defaultModelFilename: engine.defaultModelFilename ?? null,
    config,
    main: mainOfFolder(files, directory, platform, engine.defaultModelFilename),
  };
}

/** The file that the back-end will open; `model.onnx` may be a folder that holds it beside its weights. */
function mainOfFolder(
  files: readonly ManifestFile[],
  directory: string,
  platform: string,
  wanted: string | undefined,
): string | null {
  const inside = files.map(({ path }) => path).filter((path) => path.startsWith(directory));
  const name = wanted ?? artifacts[platform]?.name;
  const exact = inside.find((path) => path === `${directory}${name}` || path === `${directory}${name}/${name}`);
  if (exact) return exact;
  const fitting = inside.filter((path) => isModelFile(path));
  return fitting.length === 1 ? fitting[0]! : null;
}

function plainFiles(all: readonly ManifestFile[], engine: EngineSpec, named: readonly string[]): Layout {
  const config = ownConfigFile(all);
  const atRoot = all.filter(({ path }) => named.includes(path));
  const files = all.filter((file) => file !== config && !atRoot.includes(file));
  const platform = engine.platform ?? guessPlatform(files);
  const artifact = artifacts[platform];
  const whole = { platform, defaultModelFilename: engine.defaultModelFilename ?? null, config };
  if (platform === 'tensorflow_savedmodel') return { ...whole, main: null, files: [...savedModel(files), ...atRoot] };
  if (!artifact) {
    const inside = files.map((file) => ({ ...file, path: `1/${file.path}` }));
    return { ...whole, main: null, files: [...inside, ...atRoot] };
  }
  const plans = platform === 'tensorrt_plan' && !engine.defaultModelFilename ? severalPlans(files, artifact) : [];
  if (plans.length > 0) return { ...whole, main: null, files: [...plans, ...atRoot] };
  const main = pickMain(files, platform, artifact, engine.defaultModelFilename);
  const name = engine.defaultModelFilename ?? artifact.name;
  const beside = files
    .filter((file) => file !== main && isBeside(file, main))
    .map((file) => ({ ...file, path: twinName(file, main, name) ?? file.path.slice(folderOf(main.path).length) }));
  const clash = beside.find(({ path }) => path === name);
  if (clash)
    throw new LayoutFault(`${folderOf(main.path)}${name} lies where ${main.path} is to go; rename one of them`);
  const inside = [{ ...main, path: name }, ...beside].map((file) => ({ ...file, path: `1/${file.path}` }));
  return { ...whole, main: main.path, files: [...inside, ...atRoot] };
}

/** Several plans keep their names; servers choose by the compute capability of their GPU. */
function severalPlans(files: readonly ManifestFile[], { pattern }: Artifact): ManifestFile[] {
  const plans = files.filter(({ path }) => pattern.test(path));
  return plans.length < 2 ? [] : plans.map((file) => ({ ...file, path: `1/${baseName(file.path)}` }));
}

/** OpenVINO looks for weights under the name of the graph: `net.bin` beside `net.xml` is renamed with it. */
function twinName(file: ManifestFile, main: ManifestFile, name: string): string | undefined {
  if (!/\.xml$/i.test(main.path) || !/\.bin$/i.test(file.path)) return undefined;
  const stem = (path: string) => path.replace(/\.[^./]+$/, '');
  return stem(file.path) === stem(main.path) ? `${stem(name)}.bin` : undefined;
}

function savedModel(files: readonly ManifestFile[]): ManifestFile[] {
  const root = folderOf(files.find(({ path }) => /(^|\/)saved_model\.pb$/.test(path))?.path ?? '');
  return files
    .filter(({ path }) => path.startsWith(root))
    .map((file) => ({ ...file, path: `1/model.savedmodel/${file.path.slice(root.length)}` }));
}

/** External weights: anything in the model file's folder (or below) that is neither another model nor for processing. */
const isBeside = (file: ManifestFile, main: ManifestFile) =>
  file.path.startsWith(folderOf(main.path)) && !isModelFile(file.path) && !processingEnding.test(file.path);

const processingEnding = /\.(json|jsonl|txt|vocab|merges|labels|csv|tsv|ya?ml|model|spm)$/i;
const processingMaxBytes = 64 * 1024 * 1024;

/** Files that pre- and postprocessing may open: small ones that are no weights (tokenizer.json, vocab.txt, labels). */
export const processingFiles = (
  files: readonly ManifestFile[],
  fits: (path: string) => boolean = (path) => processingEnding.test(path),
): ManifestFile[] =>
  files
    .filter(({ path, size }) => fits(path) && size <= processingMaxBytes && !isGoldenPath(path))
    .map(({ path, sha256, size }) => ({ path, sha256, size }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
