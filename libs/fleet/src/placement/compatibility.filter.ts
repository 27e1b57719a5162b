import type { DesiredModel, ServerFacts } from '@perch/contracts';
import { onnxLimits } from './onnxruntime.plan.ts';
import type { ModelVariant, Requirements } from './variant.ts';

/** Why a server of these facts cannot run a variant, in a few words; undefined: nothing is known against it. */
export function compatibilityFault({ requires, needs }: ModelVariant, facts: ServerFacts | null): string | undefined {
  if (facts === null) return undefined;
  return (
    backendFault([requires.backend, ...needs.map(({ model }) => backendOf(model))], facts) ??
    gpuFault(requires, facts) ??
    tensorrtFault(requires, facts) ??
    onnxFault(requires, facts)
  );
}

const backendOf = ({ engine }: DesiredModel) => (engine.platform === 'ensemble' ? null : engine.backend);

function backendFault(wanted: readonly (string | null)[], { backends }: ServerFacts): string | undefined {
  if (backends === null) return undefined;
  const missing = wanted.find((backend) => backend !== null && backend !== '' && !backends.includes(backend));
  return missing ? `has no back-end ${missing}` : undefined;
}

const gpuFault = ({ gpu }: Requirements, { gpus }: ServerFacts) =>
  gpu && gpus.length === 0 ? 'has no GPU' : undefined;

/** Plans run on the version of TensorRT that built them alone; of the digits given, the first three count. */
function tensorrtFault({ tensorrt }: Requirements, facts: ServerFacts): string | undefined {
  if (tensorrt === null) return undefined;
  if (facts.tensorrt !== null && !sameVersion(tensorrt.version, facts.tensorrt))
    return `wants TensorRT ${tensorrt.version}, has ${facts.tensorrt}`;
  if (tensorrt.computeCapabilities.length === 0) return undefined;
  const known = facts.gpus.map(({ computeCapability }) => computeCapability).filter((one) => one !== null);
  const other = known.find((one) => !tensorrt.computeCapabilities.includes(one));
  return other
    ? `wants compute capability ${tensorrt.computeCapabilities.join(' or ')}, has ${[...new Set(known)].join(', ')}`
    : undefined;
}

export function sameVersion(wanted: string, present: string): boolean {
  const digits = (text: string) => text.replace(/^v/, '').split(/[^0-9]+/).filter(Boolean).slice(0, 3).map(Number); // biome-ignore format: one row reads better
  const [a, b] = [digits(wanted), digits(present)];
  return a.every((digit, place) => b[place] === undefined || b[place] === digit);
}

function onnxFault({ onnx }: Requirements, { onnxruntime }: ServerFacts): string | undefined {
  if (onnx === null || onnxruntime === null) return undefined;
  const limits = onnxLimits(onnxruntime);
  if (limits === null) return undefined;
  const has = `ONNX Runtime ${onnxruntime} takes`;
  if (onnx.opset > limits.opset) return `wants ONNX opset ${onnx.opset}, ${has} ${limits.opset}`;
  if (onnx.ir > limits.ir) return `wants ONNX IR version ${onnx.ir}, ${has} ${limits.ir}`;
  return undefined;
}
