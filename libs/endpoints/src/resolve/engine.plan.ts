import {
  type BoundProcessing,
  digestOf,
  type EndpointSpec,
  type EngineSpec,
  type EngineTensor,
  type FileFacts,
  type ManifestFile,
  type ProcessingSpec,
  type ResolvedEngine,
  type Signature,
  type TensorSpec,
  tritonModelName,
} from '@perch/contracts';
import type { ModelVariant, Requirements } from '@perch/fleet';
import { backendOf } from './artifact.plan.ts';
import type { ConfigLayers } from './config-layers.plan.ts';
import { type Format, planFormats } from './format.plan.ts';
import { type DeclaredGraph, graphFaults } from './graph.plan.ts';
import { processingFiles } from './layout.plan.ts';
import { GraphFault, LayoutFault } from './layout-fault.ts';
import { withEnvironment } from './named-file.plan.ts';
import { boundBuiltin, processingIdentity, processingOf, processingSource } from './processing.plan.ts';
import type { ConfigSight } from './version.source.ts';

/** What a deployment keeps of its version and spec; see `resolveDeployment`. */
export interface DeploymentBody {
  /** In the order of preference: each server gets the first one that it can run. None: there is no model, see `isModelless`. */
  variants: ModelVariant[];
  processing: BoundProcessing;
  processingFiles: ManifestFile[];
}

export interface Resolved {
  /** Covers manifest, engine settings and processing. */
  digest: string;
  tritonModel: string;
  body: DeploymentBody;
}

export interface ResolvableVersion extends HeldFiles {
  number: number;
  manifestDigest: string;
}

/** What is known of the files of one Triton model. */
export interface HeldFiles {
  files: readonly ManifestFile[];
  /** Of its ONNX graph. */
  signature: Signature | null;
  facts?: FileFacts | null;
  metadata?: Readonly<Record<string, string>>;
}

const noTexts: ConfigLayers = { over: null, under: null };

/**
 * Tensors to declare. Given ones are taken as they stand. Otherwise they come from the graph: whole shapes without
 * batching, and with batching without the first dimension. None: the model server completes them (no graph, or a scalar,
 * which a configuration cannot declare).
 */
function declareTensors(
  given: EngineTensor[] | undefined,
  known: TensorSpec[] | undefined,
  maxBatchSize: number,
): EngineTensor[] {
  if (given) return given;
  if (!known || known.some(({ shape }) => shape.length < (maxBatchSize > 0 ? 2 : 1) || shape.includes(0))) return [];
  return known.map(({ name, datatype, shape }) => ({
    name,
    type: datatype,
    dims: maxBatchSize > 0 ? shape.slice(1) : shape,
  }));
}

/**
 * Engine settings with nothing left to decide. `maxBatchSize` is 0 unless given, so that shapes are declared whole and
 * text models with a dynamic batch and length just work. What a text declares is not declared again by us. Throws
 * `GraphFault` where what is said contradicts the graph.
 */
export function resolveEngine(
  { engine, layout, plans }: Format,
  graph: Signature | null,
  { over, under }: ConfigLayers = noTexts,
): ResolvedEngine {
  const platform = layout.platform || over?.sight.platform || under?.sight.platform || '';
  if (platform === '')
    throw new LayoutFault('neither config.pbtxt nor the files tell the platform; say it with engine.platform');
  const backend = backendOf(platform);
  const signature = backend === 'onnxruntime' ? graph : null;
  const first = <T>(of: (sight: ConfigSight) => T | undefined, own: T | undefined): T | undefined =>
    (over ? of(over.sight) : undefined) ?? own ?? (under ? of(under.sight) : undefined);
  const said = { maxBatchSize: first((sight) => sight.maxBatchSize, engine.maxBatchSize) ?? 0 };
  if (signature)
    checkGraph(signature, {
      ...said,
      inputs: first((sight) => (sight.declaresInputs ? sight.inputs : undefined), engine.inputs),
      outputs: first((sight) => (sight.declaresOutputs ? sight.outputs : undefined), engine.outputs),
    });
  const declare = (kind: 'inputs' | 'outputs', sight: 'declaresInputs' | 'declaresOutputs') =>
    (over?.sight[sight] || under?.sight[sight]) && !engine[kind]
      ? []
      : declareTensors(engine[kind], signature?.[kind], said.maxBatchSize);
  const { executionAccelerators, optimization, sequenceBatching, responseCache, warmup, decoupled } = engine;
  return {
    platform,
    backend,
    maxBatchSize: engine.maxBatchSize ?? said.maxBatchSize,
    dynamicBatching: engine.dynamicBatching ?? null,
    instances: engine.instances ?? [],
    inputs: declare('inputs', 'declaresInputs'),
    outputs: declare('outputs', 'declaresOutputs'),
    parameters: engine.parameters ?? {},
    defaultModelFilename: layout.defaultModelFilename,
    config: over?.text ?? null,
    // Members without a value are no part of the digest, so settings of an earlier release keep theirs.
    ...given({ executionAccelerators, optimization, sequenceBatching, responseCache, warmup, decoupled }),
    ...given({ ccModelFilenames: plans?.ccModelFilenames ?? undefined, configBelow: under?.text }),
  };
}

const given = <T extends object>(settings: T): Partial<T> =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as Partial<T>;

function checkGraph(signature: Signature, said: DeclaredGraph): void {
  const faults = graphFaults(said, signature);
  if (faults.length > 0) throw new GraphFault(faults.join('; '));
}

/**
 * The ways to serve one Triton model, in order of preference: at least one. Each has its identity from the version's
 * manifest, the files it takes and its settings. Throws `LayoutFault` with the reason for people.
 */
export function resolveVariants(
  model: { name: string; number: number; manifestDigest: string },
  spec: EngineSpec,
  held: HeldFiles,
  texts: ConfigLayers = noTexts,
): ModelVariant[] {
  const engine = withEnvironment(spec, held.files);
  const sight = texts.over?.sight ?? texts.under?.sight ?? null;
  const sources = { engine, facts: held.facts ?? null, metadata: held.metadata ?? {} };
  return planFormats(held.files, sources, sight).map((format) => {
    const { layout } = format;
    const resolved = resolveEngine(format, held.signature, texts);
    const digest = digestOf({ manifest: model.manifestDigest, files: layout.files, engine: resolved });
    return {
      tritonModel: tritonModelName(model.name, model.number, digest),
      model: { engine: resolved, files: layout.files, digest },
      needs: [],
      requires: requirementsOf(format, resolved, sources.facts, sight),
    };
  });
}

function requirementsOf(
  { layout, plans, engine }: Format,
  resolved: ResolvedEngine,
  facts: FileFacts | null,
  text: ConfigSight | null,
): Requirements {
  const graph = resolved.backend === 'onnxruntime' && layout.main !== null ? facts?.onnx?.[layout.main] : undefined;
  return {
    backend: resolved.platform === 'ensemble' ? null : resolved.backend,
    gpu:
      plans !== null ||
      resolved.instances.some(({ kind }) => kind === 'gpu') ||
      resolved.executionAccelerators?.gpu !== undefined ||
      text?.wantsGpu === true,
    tensorrt: plans && { version: plans.version, computeCapabilities: plans.computeCapabilities },
    onnx: graph ? { opset: graph.opset, ir: graph.ir } : null,
    memoryBytes: engine.memoryBytes ?? null,
  };
}

/** All that one version needs to be served by one endpoint. Throws `LayoutFault` with the reason for people. */
export function resolveDeployment(
  spec: EndpointSpec,
  version: ResolvableVersion,
  texts: ConfigLayers = noTexts,
  processing: BoundProcessing = boundBuiltin(spec.processing),
): Resolved {
  const { name } = spec.model;
  const variants = resolveVariants({ ...version, name }, spec.engine, version, texts);
  const [identity, ...others] = variants.map(({ model }) => model.digest);
  const { memoryBytes, tensorrt } = spec.engine;
  const rest = { ...given({ memoryBytes, tensorrt }), ...(others.length > 0 ? { others } : {}) };
  return {
    digest: digestOf({ identity, processing: processingIdentity(processing), ...rest }),
    tritonModel: variants[0]!.tritonModel,
    body: { variants, processing, processingFiles: processingFiles(version.files) },
  };
}

/** Cheap stand-in for a deployment's digest: equal when nothing that a deployment is made from has changed. */
export const sourceDigest = (
  spec: EndpointSpec,
  version: Omit<ResolvableVersion, 'files'> & { processing?: ProcessingSpec | undefined },
): string =>
  digestOf({
    model: [spec.model.project, spec.model.name, version.number],
    manifest: version.manifestDigest,
    signature: version.signature,
    ...given({ facts: version.facts ?? undefined, ...originOf(version.metadata ?? {}) }),
    engine: spec.engine,
    processing: processingSource(processingOf(spec, version)),
  });

/** The metadata that says where a TensorRT plan runs. */
const originOf = (metadata: Readonly<Record<string, string>>) => ({
  tensorrt: metadata['tensorrt.version'],
  computeCapability: metadata['cuda.computeCapability'],
});
