import type { Framework } from '@perch/contracts';

/** In this order: a version may hold several formats, and the first is what it is known by. */
const signs: readonly [Framework, RegExp][] = [
  ['onnx', /\.onnx$/i],
  ['tensorrt', /\.(plan|engine|trt)$/i],
  ['tensorflow', /(^|\/)saved_model\.pb$|\.graphdef$/i],
  ['openvino', /\.xml$/i],
  ['pytorch', /\.(pt|pt2|pth|torchscript)$/i],
  ['python', /\.py$/i],
];

/** Framework by the names of the files; null: they do not tell. */
export function guessFramework(paths: readonly string[]): Framework | null {
  for (const [framework, pattern] of signs) if (paths.some((path) => pattern.test(path))) return framework;
  return null;
}

/** The ONNX file whose signature is the version's: `model.onnx` nearest to the top, else the only one; else none. */
export function mainOnnxPath(paths: readonly string[]): string | undefined {
  const found = paths.filter((path) => /\.onnx$/i.test(path));
  const named = found.filter((path) => /(^|\/)model\.onnx$/i.test(path));
  if (named.length === 0) return found.length === 1 ? found[0] : undefined;
  const depth = (path: string) => path.split('/').length;
  const nearest = Math.min(...named.map(depth));
  const top = named.filter((path) => depth(path) === nearest);
  return top.length === 1 ? top[0] : undefined;
}
