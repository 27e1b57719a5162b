import type { EngineSpec, Signature } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseSpec } from '../spec.plan.ts';
import type { ConfigLayer, ConfigLayers } from './config-layers.plan.ts';
import { resolveDeployment, resolveEngine, sourceDigest } from './engine.plan.ts';
import { planLayout } from './layout.plan.ts';
import { GraphFault } from './layout-fault.ts';
import type { ConfigSight } from './version.source.ts';

const files = [{ path: 'model.onnx', sha256: 'a'.repeat(64), size: 5 }];
const text: Signature = {
  inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1] }],
  outputs: [{ name: 'last_hidden_state', datatype: 'FP32', shape: [-1, -1, 384] }],
};
const layer = (sight: Partial<ConfigSight>): ConfigLayer => ({
  text: 'the text',
  sight: {
    platform: undefined, maxBatchSize: undefined, declaresInputs: false, declaresOutputs: false, hasVersionPolicy: false, ...sight,
  }, // biome-ignore format: one record
});
const over = (sight: Partial<ConfigSight>): ConfigLayers => ({ over: layer(sight), under: null });
const under = (sight: Partial<ConfigSight>): ConfigLayers => ({ over: null, under: layer(sight) });
const resolve = (engine: EngineSpec, signature: Signature | null = text, texts?: ConfigLayers) =>
  resolveEngine({ engine, layout: planLayout(files, engine), plans: null }, signature, texts);

describe('engine settings with nothing left to decide', () => {
  it('a text model just works: whole shapes, no batch dimension', () => {
    expect(resolve({})).toEqual({
      platform: 'onnxruntime_onnx',
      backend: 'onnxruntime',
      maxBatchSize: 0,
      dynamicBatching: null,
      instances: [],
      inputs: [{ name: 'input_ids', type: 'INT64', dims: [-1, -1] }],
      outputs: [{ name: 'last_hidden_state', type: 'FP32', dims: [-1, -1, 384] }],
      parameters: {},
      defaultModelFilename: null,
      config: null,
    });
  });

  it('batching strips the first dimension', () => {
    const { inputs, outputs, maxBatchSize } = resolve({ maxBatchSize: 8 });
    expect({ inputs, outputs, maxBatchSize }).toEqual({
      maxBatchSize: 8,
      inputs: [{ name: 'input_ids', type: 'INT64', dims: [-1] }],
      outputs: [{ name: 'last_hidden_state', type: 'FP32', dims: [-1, 384] }],
    });
  });

  it('given dims are taken as they stand', () => {
    const inputs = [{ name: 'input_ids', type: 'INT64' as const, dims: [1, 16] }];
    expect(resolve({ inputs }).inputs).toEqual(inputs);
    expect(resolve({ inputs: [{ ...inputs[0]!, dims: [16] }], maxBatchSize: 4 }).inputs[0]!.dims).toEqual([16]);
  });

  it.each<
    [
      string,
      Signature | null,
      EngineSpec,
      Partial<ConfigSight>,
      { inputs: number; outputs: number; maxBatchSize: number },
    ]
  >([
    ['no signature: the server completes', null, {}, {}, { inputs: 0, outputs: 0, maxBatchSize: 0 }],
    [
      'a scalar output cannot be declared',
      { ...text, outputs: [{ name: 'loss', datatype: 'FP32', shape: [] }] },
      {},
      {},
      { inputs: 1, outputs: 0, maxBatchSize: 0 },
    ],
    [
      'a vector cannot be declared in a batch',
      { ...text, outputs: [{ name: 'n', datatype: 'FP32', shape: [-1] }] },
      { maxBatchSize: 2 },
      {},
      { inputs: 1, outputs: 0, maxBatchSize: 2 },
    ],
    [
      'tensors of the own text are left to it',
      text,
      {},
      { declaresInputs: true },
      { inputs: 0, outputs: 1, maxBatchSize: 0 },
    ],
    ['batch size of the own text', text, {}, { maxBatchSize: 16 }, { inputs: 1, outputs: 1, maxBatchSize: 16 }],
    [
      'the spec wins over the own text',
      text,
      { maxBatchSize: 4 },
      { maxBatchSize: 16 },
      { inputs: 1, outputs: 1, maxBatchSize: 4 },
    ],
    [
      'tensors of the spec are said all the same',
      text,
      { inputs: [{ name: 'input_ids', type: 'INT64', dims: [-1, 8] }] },
      { declaresInputs: true, declaresOutputs: true },
      { inputs: 1, outputs: 0, maxBatchSize: 0 },
    ],
  ])('%s', (_what, signature, engine, sight, expected) => {
    const resolved = resolve(engine, signature, over(sight));
    expect(resolved.config).toBe('the text');
    expect({
      inputs: resolved.inputs.length,
      outputs: resolved.outputs.length,
      maxBatchSize: resolved.maxBatchSize,
    }).toEqual(expected);
  });

  it('a text below keeps its words, and the settings are said over it', () => {
    const resolved = resolve(
      { maxBatchSize: 4, responseCache: true },
      text,
      under({ maxBatchSize: 16, platform: 'python' }),
    );
    expect(resolved).toMatchObject({ maxBatchSize: 4, responseCache: true, config: null, configBelow: 'the text' });
    expect(resolved.inputs[0]!.dims).toEqual([-1]);
  });

  it('a fixed first dimension cannot be batched, and says so', () => {
    const fixed: Signature = { ...text, inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4] }] };
    expect(() => resolve({ maxBatchSize: 8 }, fixed)).toThrow(GraphFault);
    expect(() => resolve({ maxBatchSize: 8 }, fixed)).toThrow('input "x": dimension 0 (batch) is fixed at 1');
    expect(resolve({}, fixed).inputs[0]!.dims).toEqual([1, 4]);
  });

  it('a folder with config.pbtxt tells its platform there', () => {
    const folder = [
      { ...files[0]!, path: '1/model.onnx' },
      { ...files[0]!, path: 'config.pbtxt' },
    ];
    const layout = planLayout(folder, {});
    const of = (sight: Partial<ConfigSight>) => resolveEngine({ engine: {}, layout, plans: null }, null, over(sight));
    expect(of({ platform: 'onnxruntime' }).platform).toBe('onnxruntime');
    expect(of({ platform: 'onnxruntime_onnx' }).backend).toBe('onnxruntime');
    expect(() => of({})).toThrow('tell the platform');
  });
});

describe('identities', () => {
  const spec = (more: object = {}) =>
    parseSpec({ name: 'e', model: { project: 'p', name: 'My Model'.replace(' ', '_') }, ...more });
  const version = { number: 3, manifestDigest: 'd'.repeat(64), signature: text, files };
  const of = (more: object = {}, over: object = {}) => resolveDeployment(spec(more), { ...version, ...over });

  it('the Triton model is named by model, version and digest', () => {
    expect(of().tritonModel).toMatch(/^my-model-v3-[0-9a-f]{12}$/);
    expect(of().tritonModel.slice(-12)).toBe(of().body.variants[0]!.model.digest.slice(0, 12));
  });

  it.each<[string, object, object, { model: boolean; deployment: boolean }]>([
    ['the same again', {}, {}, { model: true, deployment: true }],
    [
      'traffic, limits, fleet',
      { limits: { timeoutMs: 1 }, fleet: { replicas: 2 }, access: { inference: 'public' } },
      {},
      { model: true, deployment: true },
    ],
    [
      'processing',
      { processing: { builtin: 'text-embedding', options: { normalize: true } } },
      {},
      { model: true, deployment: false },
    ],
    ['engine settings', { engine: { maxBatchSize: 2 } }, {}, { model: false, deployment: false }],
    ['instances', { engine: { instances: [{ count: 2 }] } }, {}, { model: false, deployment: false }],
    ['bytes', {}, { manifestDigest: 'e'.repeat(64) }, { model: false, deployment: false }],
  ])('%s', (_what, more, over, same) => {
    const base = of();
    const other = of(more, over);
    expect({ model: other.tritonModel === base.tritonModel, deployment: other.digest === base.digest }).toEqual(same);
    expect(sourceDigest(spec(more), { ...version, ...over }) === sourceDigest(spec(), version)).toBe(same.deployment);
  });
});
