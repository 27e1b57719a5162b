import type { EngineSpec, FileFacts, Signature } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseSpec } from '../spec.plan.ts';
import { type ConfigLayer, configLayers } from './config-layers.plan.ts';
import { resolveDeployment, resolveVariants, sourceDigest } from './engine.plan.ts';
import { GraphFault, LayoutFault } from './layout-fault.ts';
import type { ConfigSight } from './version.source.ts';

const files = (...paths: string[]) => paths.map((path) => ({ path, sha256: 'a'.repeat(64), size: 1 }));
const graph: Signature = {
  inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
  outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 4] }],
};
const facts: FileFacts = {
  onnx: { 'model.onnx': { opset: 17, ir: 9 }, '1/model.onnx': { opset: 17, ir: 9 } },
  tensorrt: { 'model.cc86.plan': { version: '10.3.0' } },
};
const sight = (more: Partial<ConfigSight>): ConfigSight => ({
  platform: undefined,
  maxBatchSize: undefined,
  declaresInputs: false,
  declaresOutputs: false,
  hasVersionPolicy: false,
  ...more,
});
const layer = (more: Partial<ConfigSight>, text = 'the text'): ConfigLayer => ({ text, sight: sight(more) });
const variants = (paths: string[], engine: EngineSpec, text?: ConfigLayer, metadata = {}) =>
  resolveVariants(
    { name: 'm', number: 1, manifestDigest: 'd' },
    engine,
    { files: files(...paths), signature: graph, facts, metadata },
    text ? { over: text, under: null } : undefined,
  );
const shown = (paths: string[], engine: EngineSpec, text?: ConfigLayer) =>
  variants(paths, engine, text).map(({ model, requires }) => ({
    platform: model.engine.platform,
    gpu: model.engine.executionAccelerators?.gpu?.map(({ name, precision }) => `${name} ${precision}`) ?? null,
    requires: [requires.backend, requires.gpu, requires.tensorrt?.version ?? null, requires.onnx?.opset ?? null],
  }));

const both: EngineSpec = { formatPriority: ['tensorrt_plan', 'onnxruntime_onnx'] };
const plain = { platform: 'onnxruntime_onnx', gpu: null, requires: ['onnxruntime', false, null, 17] };
const trt = { platform: 'tensorrt_plan', gpu: null, requires: ['tensorrt', true, '10.3.0', null] };
const accelerated = { platform: 'onnxruntime_onnx', gpu: ['tensorrt FP32'], requires: ['onnxruntime', true, null, 17] };
const fp16: EngineSpec = { executionAccelerators: { gpu: [{ name: 'tensorrt', precision: 'FP16' }] } };

describe('the ways to run a version, in order', () => {
  it.each<[string, string[], EngineSpec, ConfigLayer | undefined, object[]]>([
    ['no list: what the files tell', ['model.onnx'], {}, undefined, [plain]],
    ['a version with both', ['model.cc86.plan', 'model.onnx'], both, undefined, [trt, plain]],
    ['the other order', ['model.cc86.plan', 'model.onnx'], { formatPriority: ['onnxruntime_onnx', 'tensorrt_plan'] }, undefined, [plain, trt]],
    ['ONNX alone: accelerated, then plain', ['model.onnx'], both, undefined, [accelerated, plain]],
    ['ONNX alone, precision asked for', ['model.onnx'], { ...both, ...fp16 }, undefined, [{ ...accelerated, gpu: ['tensorrt FP16'] }, plain]],
    ['ONNX alone, other accelerators stay', ['model.onnx'], { ...both, executionAccelerators: { gpu: [{ name: 'cuda' }] } }, undefined, [
      { ...accelerated, gpu: ['tensorrt FP32', 'cuda undefined'] }, { ...plain, gpu: ['cuda undefined'], requires: ['onnxruntime', true, null, 17] },
    ]],
    ['a plan alone', ['model.cc86.plan'], both, undefined, [trt]],
    ['formats that are not there are left out', ['model.onnx'], { formatPriority: ['openvino', 'onnxruntime_onnx'] }, undefined, [plain]],
    ['an accelerator without a list wants a GPU', ['model.onnx'], fp16, undefined, [{ ...accelerated, gpu: ['tensorrt FP16'] }]],
    ['instances on GPUs', ['model.onnx'], { instances: [{ kind: 'gpu', count: 1 }] }, undefined, [{ ...plain, requires: ['onnxruntime', true, null, 17] }]],
    ['instances on GPUs by the text', ['model.onnx'], {}, layer({ wantsGpu: true }), [{ ...plain, requires: ['onnxruntime', true, null, 17] }]],
    ['a folder that says ONNX', ['1/model.onnx', 'config.pbtxt'], both, layer({ platform: 'onnxruntime_onnx' }), [accelerated, plain]],
    ['a text with another back-end than its files', ['model.onnx', 'model.py'], {}, layer({ platform: 'python' }), [
      { platform: 'python', gpu: null, requires: ['python', false, null, null] },
    ]],
  ])('%s', (_what, paths, engine, text, wanted) => expect(shown(paths, engine, text)).toEqual(wanted)); // biome-ignore format: one row a case

  it('each has an identity of its own; plans of several GPUs share one', () => {
    const [first, second] = variants(['model.onnx'], both);
    expect(first!.tritonModel).not.toBe(second!.tritonModel);
    expect(second!.tritonModel).toBe(variants(['model.onnx'], {})[0]!.tritonModel);
    const [plans] = variants(['a.cc86.plan', 'b.cc89.plan'], { tensorrt: { version: '10.3.0' } });
    expect(plans!.model.files.map(({ path }) => path)).toEqual(['1/a.cc86.plan', '1/b.cc89.plan']);
    expect(plans!.model.engine.ccModelFilenames).toEqual({ '8.6': 'a.cc86.plan', '8.9': 'b.cc89.plan' });
    expect(plans!.requires.tensorrt).toEqual({ version: '10.3.0', computeCapabilities: ['8.6', '8.9'] });
  });

  it('tensors of the graph are declared for ONNX Runtime alone', () => {
    const [plans, onnx] = variants(['model.cc86.plan', 'model.onnx'], both);
    expect([plans!.model.engine.inputs.length, onnx!.model.engine.inputs.length]).toEqual([0, 1]);
  });

  it.each<[string, string[], EngineSpec, ConfigLayer | undefined, string]>([
    ['none of the formats', ['model.onnx'], { formatPriority: ['openvino'] }, undefined, 'holds none of the formats openvino of engine.formatPriority'],
    ['a plan alone is wanted', ['model.onnx'], { formatPriority: ['tensorrt_plan'] }, undefined, 'holds none of the formats tensorrt_plan'],
    ['the text says another one', ['model.onnx', 'model.py'], both, layer({ platform: 'python' }), 'its configuration says python'],
    ['the text names accelerators', ['model.onnx'], both, layer({ namesAccelerators: true }), 'names execution accelerators itself'],
    ['a plan that does not tell its GPU', ['x.plan', 'model.onnx'], both, undefined, 'x.plan does not tell the GPU'],
  ])('%s is refused', (_what, paths, engine, text, words) => {
    expect(() => variants(paths, engine, text)).toThrow(LayoutFault);
    expect(() => variants(paths, engine, text)).toThrow(words);
  }); // biome-ignore format: one row a case
});

describe('texts around the settings', () => {
  const spec = (engine: object, model: object = {}) =>
    parseSpec({ name: 'e', model: { project: 'p', name: 'm', ...model }, engine });
  const own = layer({ platform: 'onnxruntime', maxBatchSize: 8, declaresInputs: true, inputs: [] }, 'own');
  const user = layer({ maxBatchSize: 2 }, 'user');

  it.each<[string, object, ConfigLayer | null, ConfigLayer | null, [string | null, string | null]]>([
    ["a version's text alone is taken as it stands", {}, null, own, ['own', null]],
    ['settings of the endpoint win over it', { maxBatchSize: 4 }, null, own, [null, 'own']],
    ['so does the text of the endpoint', {}, user, own, ['user', 'own']],
    ['a platform that it contradicts', { platform: 'python' }, null, own, [null, 'own']],
    ['a platform that it agrees with', { platform: 'onnxruntime_onnx' }, null, own, ['own', null]],
    ["the endpoint's text alone", {}, user, null, ['user', null]],
    ['where it runs is no setting that a text could say', { memoryBytes: 5, formatPriority: ['onnxruntime_onnx'] }, null, own, ['own', null]],
  ])('%s', (_what, engine, over, under, wanted) => {
    const layers = configLayers(spec(engine), over, under);
    expect([layers.over?.text ?? null, layers.under?.text ?? null]).toEqual(wanted);
  }); // biome-ignore format: one row a case

  it('what wins decides the batch that the graph is held to', () => {
    const fixed = { ...graph, inputs: [{ name: 'x', datatype: 'FP32' as const, shape: [1, 4] }] };
    const of = (engine: EngineSpec, over: ConfigLayer | null, under: ConfigLayer | null) => () =>
      resolveVariants(
        { name: 'm', number: 1, manifestDigest: 'd' },
        engine,
        { files: files('model.onnx'), signature: fixed },
        { over, under },
      );
    expect(of({}, layer({ maxBatchSize: 8 }), null)).toThrow(GraphFault);
    expect(of({ maxBatchSize: 0 }, null, layer({ maxBatchSize: 8 }))).not.toThrow();
    expect(of({ maxBatchSize: 8 }, null, layer({ maxBatchSize: 0 }))).toThrow(GraphFault);
    expect(of({ maxBatchSize: 8 }, layer({ maxBatchSize: 0 }), null)).not.toThrow();
    const declared = { declaresInputs: true, inputs: [{ name: 'x', type: 'FP32', dims: [-1, 4] }] };
    expect(of({}, layer(declared), null)).toThrow('input "x": dimension 0 is fixed at 1');
  });

  const policy = (kind: 'latest' | 'all' | 'specific', count = 0, versions: number[] = []) =>
    layer({ versionPolicy: { kind, count, versions }, withoutPolicy: 'bare' }, 'own');
  it.each<[string, ConfigLayer, object, string | null]>([
    ['the newest alone is what we do', policy('latest', 1), {}, 'bare'],
    ['several, said by the endpoint', policy('latest', 3), { maxVersions: 3 }, 'bare'],
    ['all, said by the endpoint', policy('all'), { maxVersions: 9 }, 'bare'],
    ['one version fixed', policy('specific', 0, [4]), { version: 4 }, 'bare'],
    ['several, and nobody said so', policy('latest', 3), {}, null],
    ['all, and nobody said so', policy('all'), {}, null],
    ['specific ones, and nobody said so', policy('specific', 0, [1, 2]), {}, null],
  ])('a version policy: %s', (_what, text, model, wanted) => {
    const layers = () => configLayers(spec({}, model), null, text);
    if (wanted === null)
      expect(layers).toThrow(/version_policy .*say how many versions are served with model.maxVersions/);
    else expect(layers().over!.text).toBe(wanted);
  });
});

describe('identities and what is declared beside them', () => {
  const spec = (engine: object) => parseSpec({ name: 'e', model: { project: 'p', name: 'm' }, engine });
  const of = (engine: object) =>
    resolveDeployment(spec(engine), { number: 1, manifestDigest: 'd', files: files('model.onnx'), signature: graph });

  it('a declared first guess changes no model, but where it is placed', () => {
    expect(of({ memoryBytes: 5 }).tritonModel).toBe(of({}).tritonModel);
    expect(of({ memoryBytes: 5 }).digest).not.toBe(of({}).digest);
    expect(of({ memoryBytes: 5 }).body.variants[0]!.requires.memoryBytes).toBe(5);
  });

  const noSigns = { declaresInputs: true, declaresOutputs: true };
  // Model, deployment and source digest that the release before this one gave for the same version and settings.
  it.each<[string, string[], object, ConfigLayer | null, Signature | null, [string, string, string]]>([
    ['ONNX', ['model.onnx'], {}, null, graph, ['ce7374455d55', '0494365de1df', '1dde69076172']],
    ['batching', ['net.onnx', 'net.onnx.data'], { maxBatchSize: 8, instances: [{ kind: 'cpu', count: 2 }], dynamicBatching: { maxQueueDelayUs: 5 } }, null, graph, ['0981d7505852', 'e6fae57c7ae6', '40857f7e79be']],
    ['a folder', ['1/model.onnx', 'config.pbtxt', 'labels.txt'], {}, layer({ platform: 'onnxruntime', maxBatchSize: 8, ...noSigns }), graph, ['cc360d6ee8c6', 'd209238856a6', '1dde69076172']],
    ['Python', ['model.py', 'vocab.txt'], {}, null, null, ['14520635c8db', 'b3f8c122d23c', '1f632f747838']],
    ['TorchScript', ['x.pt'], { parameters: { INFERENCE_MODE: 'true' } }, null, null, ['6b1e37163cb1', '59e4b3095945', 'd8782134aeb2']],
  ])('keeps the identities of the release before: %s', (_what, paths, engine, own, signature, wanted) => {
    const version = { number: 1, manifestDigest: 'd', files: files(...paths), signature };
    const resolved = resolveDeployment(spec(engine), version, configLayers(spec(engine), null, own));
    const source = sourceDigest(spec(engine), version);
    expect([resolved.tritonModel.slice(-12), resolved.digest.slice(0, 12), source.slice(0, 12)]).toEqual(wanted);
  }); // biome-ignore format: one row a case
});
