/**
 * Highest ONNX opset and IR version that a release of ONNX Runtime accepts: those of the ONNX release it is built with.
 * Sources: the "ONNX opset support" table of ONNX Runtime's compatibility page, and docs/Versioning.md of ONNX, which
 * names the IR version of each ONNX release (ONNX Runtime refuses a model above the IR version of its own copy).
 */
const releases: Readonly<Record<string, { opset: number; ir: number }>> = {
  '1.6': { opset: 13, ir: 7 }, '1.7': { opset: 13, ir: 7 }, '1.8': { opset: 14, ir: 7 },
  '1.9': { opset: 15, ir: 8 }, '1.10': { opset: 15, ir: 8 }, '1.11': { opset: 16, ir: 8 },
  '1.12': { opset: 17, ir: 8 }, '1.13': { opset: 17, ir: 8 }, '1.14': { opset: 18, ir: 8 },
  '1.15': { opset: 19, ir: 9 }, '1.16': { opset: 19, ir: 9 }, '1.17': { opset: 20, ir: 9 },
  '1.18': { opset: 21, ir: 10 }, '1.19': { opset: 21, ir: 10 }, '1.20': { opset: 21, ir: 10 },
  '1.21': { opset: 22, ir: 10 }, '1.22': { opset: 22, ir: 10 },
}; // biome-ignore format: a table

/** Null: a release that the table does not hold (newer, or no version at all); then nothing is ruled out. */
export function onnxLimits(version: string): { opset: number; ir: number } | null {
  const [, release] = /^v?(\d+\.\d+)/.exec(version) ?? [];
  return (release !== undefined && releases[release]) || null;
}
