import {
  digestOf,
  type EndpointSpec,
  type EngineSpec,
  type EngineTensor,
  type ManifestFile,
  type ProcessingSpec,
  type ResolvedEngine,
  type Signature,
  type TensorSpec,
  tritonModelName,
} from '@perch/contracts';
import type { ModelVariant, Requirements } from '@perch/fleet';
import { type Layout, LayoutFault, processingFiles } from './layout.plan.ts';
import type { ConfigSight } from './version.source.ts';

/** What a deployment keeps of its version and spec; see `resolveDeployment`. */
export interface DeploymentBody {
  /** In the order of preference: each server gets the first one that it can run. At least one. */
  variants: ModelVariant[];
  processing: { builtin: string; options: Record<string, unknown> };
  processingFiles: ManifestFile[];
}

export interface Resolved {
  /** Covers manifest, engine settings and processing. */
  digest: string;
  tritonModel: string;
  body: DeploymentBody;
}

export interface ResolvableVersion {
  number: number;
  manifestDigest: string;
  signature: Signature | null;
  files: readonly ManifestFile[];
}

const backends: Record<string, string> = {
  onnxruntime_onnx: 'onnxruntime',
  tensorrt_plan: 'tensorrt',
  pytorch_libtorch: 'pytorch',
  tensorflow_savedmodel: 'tensorflow',
};

/**
 * Tensors to declare. Given ones are taken as they stand. Otherwise they come from the version's signature: whole shapes
 * without batching, and with batching without the first dimension, which must then be -1 everywhere. None: the model
 * server completes them (no signature, or a scalar, which a configuration cannot declare).
 */
function declareTensors(
  given: EngineTensor[] | undefined,
  known: TensorSpec[] | undefined,
  maxBatchSize: number,
): EngineTensor[] {
  if (given) return given;
  if (!known || known.some(({ shape }) => shape.length < (maxBatchSize > 0 ? 2 : 1) || shape.includes(0))) return [];
  if (maxBatchSize > 0) {
    const fixed = known.find(({ shape }) => shape[0] !== -1);
    if (fixed)
      throw new LayoutFault(
        `tensor ${fixed.name} has the fixed first dimension ${fixed.shape[0]}, so it cannot be batched; set engine.maxBatchSize 0`,
      );
  }
  return known.map(({ name, datatype, shape }) => ({
    name,
    type: datatype,
    dims: maxBatchSize > 0 ? shape.slice(1) : shape,
  }));
}

/** The configuration text that counts (the user's, else the version's own), and what it decides. */
export interface OwnConfig {
  text: string;
  sight: ConfigSight;
}

/**
 * Engine settings with nothing left to decide. `maxBatchSize` is 0 unless given, so that shapes are declared whole and
 * text models with a dynamic batch and length just work. What the own text declares is not declared again by us.
 */
export function resolveEngine(
  engine: EngineSpec,
  layout: Layout,
  signature: Signature | null,
  own: OwnConfig | null,
): ResolvedEngine {
  const maxBatchSize = engine.maxBatchSize ?? own?.sight.maxBatchSize ?? 0;
  const platform = layout.platform || own?.sight.platform || '';
  if (platform === '')
    throw new LayoutFault('neither config.pbtxt nor the files tell the platform; say it with engine.platform');
  const declare = (given: EngineTensor[] | undefined, known: TensorSpec[] | undefined, byText: boolean | undefined) =>
    byText && !given ? [] : declareTensors(given, known, maxBatchSize);
  const inputs = declare(engine.inputs, signature?.inputs, own?.sight.declaresInputs);
  const outputs = declare(engine.outputs, signature?.outputs, own?.sight.declaresOutputs);
  return {
    platform,
    backend: backends[platform] ?? platform,
    maxBatchSize,
    dynamicBatching: engine.dynamicBatching ?? null,
    instances: engine.instances ?? [],
    inputs,
    outputs,
    parameters: engine.parameters ?? {},
    defaultModelFilename: layout.defaultModelFilename,
    config: own?.text ?? null,
  };
}

const processingOf = (processing: ProcessingSpec) => ({
  builtin: processing.builtin ?? 'passthrough',
  options: processing.options ?? {},
});

/** All that one version needs to be served by one endpoint. Throws `LayoutFault` with the reason for people. */
export function resolveDeployment(
  spec: EndpointSpec,
  version: ResolvableVersion,
  layout: Layout,
  own: OwnConfig | null,
): Resolved {
  const engine = resolveEngine(spec.engine, layout, version.signature, own);
  const processing = processingOf(spec.processing);
  const identity = digestOf({ manifest: version.manifestDigest, files: layout.files, engine });
  const variant: ModelVariant = {
    tritonModel: tritonModelName(spec.model.name, version.number, identity),
    model: { engine, files: layout.files, digest: identity },
    needs: [],
    requires: requirementsOf(engine),
  };
  return {
    digest: digestOf({ identity, processing }),
    tritonModel: variant.tritonModel,
    body: { variants: [variant], processing, processingFiles: processingFiles(version.files) },
  };
}

const requirementsOf = (engine: ResolvedEngine): Requirements => ({
  backend: engine.platform === 'ensemble' ? null : engine.backend,
  gpu: engine.instances.some(({ kind }) => kind === 'gpu'),
  tensorrt: null,
  onnx: null,
  memoryBytes: null,
});

/** Cheap stand-in for a deployment's digest: equal when nothing that a deployment is made from has changed. */
export const sourceDigest = (
  spec: EndpointSpec,
  version: { number: number; manifestDigest: string; signature: Signature | null },
): string =>
  digestOf({
    model: [spec.model.project, spec.model.name, version.number],
    manifest: version.manifestDigest,
    signature: version.signature,
    engine: spec.engine,
    processing: processingOf(spec.processing),
  });
