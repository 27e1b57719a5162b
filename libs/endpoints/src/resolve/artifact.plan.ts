import type { ManifestFile } from '@perch/contracts';
import { LayoutFault } from './layout-fault.ts';

/** How a platform's model file is known, and where its back-end looks for it. */
export interface Artifact {
  pattern: RegExp;
  name: string;
}

/** Platforms whose model is one file with a name; others get all files of the version as they are. */
export const artifacts: Readonly<Record<string, Artifact>> = {
  onnxruntime_onnx: { pattern: /\.onnx$/i, name: 'model.onnx' },
  tensorrt_plan: { pattern: /\.(plan|engine|trt)$/i, name: 'model.plan' },
  pytorch_libtorch: { pattern: /\.(pt|pth|torchscript)$/i, name: 'model.pt' },
  torch_aoti: { pattern: /\.pt2$/i, name: 'model.pt2' },
  tensorflow_graphdef: { pattern: /\.(graphdef|pb)$/i, name: 'model.graphdef' },
  openvino: { pattern: /\.xml$/i, name: 'model.xml' },
  dali: { pattern: /\.dali$/i, name: 'model.dali' },
};

const savedModel = /(^|\/)saved_model\.pb$/;
const guesses: readonly [RegExp, string][] = [
  [/\.onnx$/i, 'onnxruntime_onnx'],
  [/\.(plan|engine|trt)$/i, 'tensorrt_plan'],
  [savedModel, 'tensorflow_savedmodel'],
  [/\.pt2$/i, 'torch_aoti'],
  [/\.(pt|pth|torchscript)$/i, 'pytorch_libtorch'],
  [/\.xml$/i, 'openvino'],
  [/\.graphdef$/i, 'tensorflow_graphdef'],
  [/\.dali$/i, 'dali'],
  [/(^|\/)model\.py$/, 'python'],
];

/** Back-ends by another name than their platform's. */
const backends: Readonly<Record<string, string>> = {
  onnxruntime_onnx: 'onnxruntime',
  tensorrt_plan: 'tensorrt',
  pytorch_libtorch: 'pytorch',
  torch_aoti: 'pytorch',
  tensorflow_savedmodel: 'tensorflow',
  tensorflow_graphdef: 'tensorflow',
};
export const backendOf = (platform: string): string => backends[platform] ?? platform;

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
export const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);

const modelFile = /\.(onnx|plan|engine|trt|pt|pth|torchscript|pt2|graphdef|xml|dali)$/i;
/** A model by its ending, of whatever format. */
export const isModelFile = (path: string): boolean => modelFile.test(path);

/** Code of a Python model beside whatever it loads itself; where another back-end's own file name stands, that is the model. */
function isPythonModel(files: readonly ManifestFile[]): boolean {
  const usual = new Set(Object.values(artifacts).map(({ name }) => name));
  const code = files.find(({ path }) => /^([1-9][0-9]*\/)?model\.py$/.test(path));
  return code !== undefined && !files.some(({ path }) => usual.has(path.slice(folderOf(code.path).length)));
}

/** Whether the files tell a platform at all. */
export const guessesPlatform = (files: readonly ManifestFile[]): boolean =>
  guesses.some(([pattern]) => files.some(({ path }) => pattern.test(path)));

export function guessPlatform(files: readonly ManifestFile[]): string {
  if (isPythonModel(files)) return 'python';
  for (const [pattern, platform] of guesses) if (files.some(({ path }) => pattern.test(path))) return platform;
  throw new LayoutFault('the files do not tell the platform; say it with engine.platform');
}

/** Whether a version holds a format at all; of back-ends without a sign of their own nothing is known, so they may. */
export function holdsFormat(files: readonly ManifestFile[], platform: string): boolean {
  const any = (pattern: RegExp) => files.some(({ path }) => pattern.test(path));
  if (platform === 'tensorflow_savedmodel') return any(savedModel);
  if (platform === 'tensorflow_graphdef') return any(/\.graphdef$/i);
  if (platform === 'python') return any(/(^|\/)model\.py$/);
  const artifact = artifacts[platform];
  return artifact === undefined || any(artifact.pattern);
}

/** The one file that is the model: the one named, else of the usual name nearest to the top, else the only one. */
export function pickMain(
  files: readonly ManifestFile[],
  platform: string,
  artifact: Artifact,
  wanted?: string,
): ManifestFile {
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
