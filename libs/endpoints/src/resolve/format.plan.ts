import type { Accelerator, EngineSpec, ExecutionAccelerators, ManifestFile } from '@perch/contracts';
import { artifacts, backendOf, baseName, holdsFormat } from './artifact.plan.ts';
import { isTritonFolder, type Layout, LayoutFault, planLayout } from './layout.plan.ts';
import { type PlanGroup, type PlanSources, planTensorrt } from './tensorrt.plan.ts';
import type { ConfigSight } from './version.source.ts';

/** One format of a version, laid out. */
export interface Format {
  /** With the platform that was chosen, and the accelerators that this way of running has. */
  engine: EngineSpec;
  layout: Layout;
  plans: PlanGroup | null;
}

const onnx = 'onnxruntime_onnx';
const tensorrt = 'tensorrt_plan';

/**
 * The ways to run a version, in the order of `formatPriority` (else the one that its files or the settings tell). What
 * the version does not hold is left out; a plan it does not hold is stood in for by ONNX Runtime's TensorRT accelerator,
 * where ONNX is listed too. Throws `LayoutFault`.
 */
export function planFormats(
  files: readonly ManifestFile[],
  sources: Omit<PlanSources, 'byText'>,
  text: ConfigSight | null,
): Format[] {
  const { engine } = sources;
  const wanted = engine.formatPriority;
  const plans = { ...sources, byText: text?.ccModelFilenames ?? {} };
  if (!wanted) return formatOf(byText(engine, files, text), files, plans, text);
  const found = wanted.flatMap((platform) => {
    if (text?.platform && backendOf(text.platform) !== backendOf(platform) && !standsIn(platform, text)) return [];
    if (holdsFormat(files, platform)) return formatOf(plainOnnx(engine, platform), files, plans, text);
    if (platform !== tensorrt || !wanted.includes(onnx) || !holdsFormat(files, onnx)) return [];
    return formatOf(accelerated(engine, text), files, plans, text);
  });
  if (found.length > 0) return found;
  const said = text?.platform ? `; its configuration says ${text.platform}` : '';
  throw new LayoutFault(`holds none of the formats ${wanted.join(', ')} of engine.formatPriority${said}`);
}

/** A text that names another back-end than the files suggest decides how plain files are laid out. */
function byText(engine: EngineSpec, files: readonly ManifestFile[], text: ConfigSight | null): EngineSpec {
  if (engine.platform || !text?.platform || isTritonFolder(files)) return engine;
  const same = Object.keys(artifacts).find(
    (platform) => backendOf(platform) === backendOf(text.platform!) && holdsFormat(files, platform),
  );
  return { ...engine, platform: same ?? text.platform };
}

const standsIn = (platform: string, text: ConfigSight) =>
  platform === tensorrt && backendOf(text.platform!) === 'onnxruntime';

function formatOf(
  engine: EngineSpec,
  files: readonly ManifestFile[],
  sources: PlanSources,
  text: ConfigSight | null,
): Format[] {
  const layout = planLayout(files, engine, text?.namedFiles ?? []);
  const platform = layout.platform || text?.platform || '';
  if (backendOf(platform) !== 'tensorrt') return [{ engine, layout, plans: null }];
  return planTensorrt(files, sources).map((plans) => ({ engine, layout: planLayoutOf(plans, layout, files), plans }));
}

/** A Triton folder stays as it is; otherwise the plans of the group alone, under their own names when there are several. */
function planLayoutOf(plans: PlanGroup, layout: Layout, files: readonly ManifestFile[]): Layout {
  if (isTritonFolder(files) || plans.ccModelFilenames === null) return layout;
  const kept = files.filter(({ path }) => plans.paths.includes(path));
  const beside = layout.files.filter(({ path }) => !path.startsWith('1/'));
  return {
    ...layout,
    main: null,
    files: [...kept.map((file) => ({ ...file, path: `1/${baseName(file.path)}` })), ...beside],
  };
}

const isTensorrt = ({ name }: Accelerator) => name === 'tensorrt';

/** ONNX Runtime hands to TensorRT what it can; FP32 unless another precision was asked for, so that both ways answer alike. */
function accelerated(engine: EngineSpec, text: ConfigSight | null): EngineSpec {
  if (text?.namesAccelerators)
    throw new LayoutFault(
      'the configuration text names execution accelerators itself, so formatPriority cannot add TensorRT to them; leave them out of one of the two',
    );
  const gpu = engine.executionAccelerators?.gpu ?? [];
  const own = gpu.find(isTensorrt) ?? { name: 'tensorrt' };
  const first: Accelerator = { ...own, precision: own.precision ?? 'FP32' };
  return {
    ...engine,
    platform: onnx,
    executionAccelerators: { ...engine.executionAccelerators, gpu: [first, ...gpu.filter((one) => !isTensorrt(one))] },
  };
}

/** In a list of formats TensorRT is a way of its own, so the plain graph runs without it. */
function plainOnnx(engine: EngineSpec, platform: string): EngineSpec {
  const gpu = engine.executionAccelerators?.gpu?.filter((one) => !isTensorrt(one)) ?? [];
  const { cpu } = engine.executionAccelerators ?? {};
  const left: ExecutionAccelerators = { ...(gpu.length > 0 ? { gpu } : {}), ...(cpu ? { cpu } : {}) };
  const { executionAccelerators: _all, ...rest } = engine;
  return { ...rest, platform, ...(gpu.length > 0 || cpu ? { executionAccelerators: left } : {}) };
}
