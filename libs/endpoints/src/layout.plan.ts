import { type EngineSpec, type ManifestFile, pathFault } from '@perch/contracts';

export interface Layout {
  platform: string;
  /** Files below the Triton model's folder, whose one version directory is `1`. */
  files: ManifestFile[];
  defaultModelFilename: string | null;
  /** The version's own config.pbtxt, when it holds a whole Triton model folder. */
  config: ManifestFile | null;
}

/** A sentence that says why the files cannot be laid out; shown to people as the deployment's reason. */
export class LayoutFault extends Error {
  override readonly name = 'LayoutFault';
}

interface Artifact {
  pattern: RegExp;
  /** Where Triton's back-end looks for it. */
  name: string;
}

/** Platforms whose model is one file with a name; others get all files of the version as they are. */
const artifacts: Record<string, Artifact> = {
  onnxruntime_onnx: { pattern: /\.onnx$/i, name: 'model.onnx' },
  tensorrt_plan: { pattern: /\.(plan|engine|trt)$/i, name: 'model.plan' },
  pytorch_libtorch: { pattern: /\.(pt|pth|torchscript)$/i, name: 'model.pt' },
};

const guesses: readonly [RegExp, string][] = [
  [/\.onnx$/i, 'onnxruntime_onnx'],
  [/\.(plan|engine|trt)$/i, 'tensorrt_plan'],
  [/(^|\/)saved_model\.pb$/, 'tensorflow_savedmodel'],
  [/\.(pt|pth|torchscript)$/i, 'pytorch_libtorch'],
  [/\.xml$/i, 'openvino'],
  [/(^|\/)model\.py$/, 'python'],
];

const baseName = (path: string) => path.slice(path.lastIndexOf('/') + 1);
const folderOf = (path: string) => path.slice(0, path.lastIndexOf('/') + 1);

function guessPlatform(files: readonly ManifestFile[]): string {
  for (const [pattern, platform] of guesses) if (files.some(({ path }) => pattern.test(path))) return platform;
  throw new LayoutFault('the files do not tell the platform; say it with engine.platform');
}

/**
 * Where each file of a version goes in a Triton model folder. A version that holds such a folder already (`1/…`) is
 * taken as it is; otherwise the model file is found by its ending, gets the name its back-end looks for, and what lies
 * beside it (external weights) keeps its name. Throws `LayoutFault`.
 */
export function planLayout(files: readonly ManifestFile[], engine: EngineSpec): Layout {
  const layout = files.some(({ path }) => /^[1-9][0-9]*\//.test(path))
    ? tritonFolder(files, engine)
    : plainFiles(files, engine);
  for (const { path } of layout.files) {
    const fault = pathFault(path);
    if (fault) throw new LayoutFault(`file ${path}: ${fault}`);
  }
  return { ...layout, files: [...layout.files].sort((a, b) => (a.path < b.path ? -1 : 1)) };
}

function tritonFolder(files: readonly ManifestFile[], engine: EngineSpec): Layout {
  const directories = [
    ...new Set(files.map(({ path }) => /^([1-9][0-9]*)\//.exec(path)?.[1]).filter((n) => n !== undefined)),
  ];
  if (directories.length > 1)
    throw new LayoutFault(`holds the version directories ${directories.join(', ')}; a version holds one of them`);
  const directory = `${directories[0]}/`;
  const config = files.find(({ path }) => path === 'config.pbtxt') ?? null;
  const moved = files
    .filter((file) => file !== config)
    .map((file) =>
      file.path.startsWith(directory) ? { ...file, path: `1/${file.path.slice(directory.length)}` } : file,
    );
  const platform = engine.platform ?? (config ? '' : guessPlatform(files));
  return { platform, files: moved, defaultModelFilename: engine.defaultModelFilename ?? null, config };
}

function plainFiles(files: readonly ManifestFile[], engine: EngineSpec): Layout {
  const platform = engine.platform ?? engine.formatPriority?.[0] ?? guessPlatform(files);
  const artifact = artifacts[platform];
  const wholeFolder = { platform, defaultModelFilename: engine.defaultModelFilename ?? null, config: null };
  if (platform === 'tensorflow_savedmodel') return { ...wholeFolder, files: savedModel(files) };
  if (!artifact) return { ...wholeFolder, files: files.map((file) => ({ ...file, path: `1/${file.path}` })) };
  const main = pickMain(files, platform, artifact, engine.defaultModelFilename);
  const name = engine.defaultModelFilename ?? artifact.name;
  const beside = files.filter((file) => file !== main && isBeside(file, main, artifact));
  const clash = beside.find((file) => baseName(file.path) === name);
  if (clash) throw new LayoutFault(`${clash.path} lies where ${main.path} is to go; rename one of them`);
  return {
    platform,
    files: [{ ...main, path: `1/${name}` }, ...beside.map((file) => ({ ...file, path: `1/${inFolder(file, main)}` }))],
    defaultModelFilename: engine.defaultModelFilename ?? null,
    config: null,
  };
}

const inFolder = (file: ManifestFile, main: ManifestFile) => file.path.slice(folderOf(main.path).length);

function savedModel(files: readonly ManifestFile[]): ManifestFile[] {
  const root = folderOf(files.find(({ path }) => /(^|\/)saved_model\.pb$/.test(path))?.path ?? '');
  return files
    .filter(({ path }) => path.startsWith(root))
    .map((file) => ({ ...file, path: `1/model.savedmodel/${file.path.slice(root.length)}` }));
}

/** External weights: anything in the model file's folder (or below) that is neither another model nor for processing. */
const isBeside = (file: ManifestFile, main: ManifestFile, artifact: Artifact) =>
  file.path.startsWith(folderOf(main.path)) && !artifact.pattern.test(file.path) && !processingEnding.test(file.path);

function pickMain(files: readonly ManifestFile[], platform: string, artifact: Artifact, wanted?: string): ManifestFile {
  const named = wanted === undefined ? [] : files.filter(({ path }) => baseName(path) === wanted);
  if (named.length === 1) return named[0]!;
  const fitting = files.filter(({ path }) => artifact.pattern.test(path));
  const usual = fitting.filter(({ path }) => baseName(path) === artifact.name);
  const shallow = [...usual].sort((a, b) => a.path.split('/').length - b.path.split('/').length);
  if (shallow.length === 1 || (shallow[1] && folderOf(shallow[0]!.path).length < folderOf(shallow[1].path).length))
    return shallow[0]!;
  if (fitting.length === 1) return fitting[0]!;
  if (fitting.length === 0 && files.length === 1) return files[0]!;
  throw new LayoutFault(
    fitting.length === 0
      ? `no file for platform ${platform} (${artifact.pattern.source}) among ${files.length} files`
      : `${fitting.length} files fit platform ${platform} (${fitting
          .slice(0, 3)
          .map(({ path }) => path)
          .join(', ')}); name one with engine.defaultModelFilename`,
  );
}

const processingEnding = /\.(json|jsonl|txt|vocab|merges|labels|csv|tsv|ya?ml|model|spm)$/i;
const processingMaxBytes = 64 * 1024 * 1024;

/** Files that pre- and postprocessing may open: small ones that are no weights (tokenizer.json, vocab.txt, labels). */
export const processingFiles = (files: readonly ManifestFile[]): ManifestFile[] =>
  files
    .filter(({ path, size }) => processingEnding.test(path) && size <= processingMaxBytes)
    .map(({ path, sha256, size }) => ({ path, sha256, size }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
