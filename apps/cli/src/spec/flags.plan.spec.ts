import { endpointSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { specFromFlags } from './flags.plan.ts';

const whole = (spec: object) => endpointSpec.parse({ name: 'e', ...spec });

describe('a specification from flags', () => {
  it.each([
    [{ model: 'nlp/m' }, { model: { project: 'nlp', name: 'm' } }],
    [{ model: 'nlp/m@3' }, { model: { project: 'nlp', name: 'm', version: 3 } }],
    [{ source: 'gpu-box/resnet50' }, { model: { project: 'external', name: 'resnet50', source: 'gpu-box/resnet50' } }],
    [{ source: 'boxes/r', versions: '1,2', weight: ['1=9', '2=1'] },
      { model: { project: 'external', name: 'r', source: 'boxes/r', maxVersions: 2, select: { versions: [1, 2] } }, traffic: { mode: 'weighted', weights: { 1: 9, 2: 1 } } }],
    [
      { model: 'nlp/m', tag: ['prod'], tagMatch: 'any', drafts: true, maxVersions: '2' },
      { model: { project: 'nlp', name: 'm', maxVersions: 2, select: { tags: ['prod'], tagMatch: 'any', published: false } } },
    ],
    [{ model: 'nlp/m', processing: 'text-embedding', option: ['maxTokens=128', 'pooling=cls', 'padding={"to":128}'] },
      { model: { project: 'nlp', name: 'm' }, processing: { builtin: 'text-embedding', options: { maxTokens: 128, pooling: 'cls', padding: { to: 128 } } } }],
    [{ model: 'nlp/m', maxBatch: '32', preferredBatch: '8,16', batchDelayUs: '2000', instances: ['cpu:2'] },
      { model: { project: 'nlp', name: 'm' }, engine: { maxBatchSize: 32, dynamicBatching: { preferredSizes: [8, 16], maxQueueDelayUs: 2000 }, instances: [{ kind: 'cpu', count: 2 }] } }],
    [{ model: 'nlp/m', input: ['ids:int64:-1,-1'] },
      { model: { project: 'nlp', name: 'm' }, engine: { inputs: [{ name: 'ids', type: 'INT64', dims: [-1, -1] }] } }],
    [{ model: 'nlp/m', formatPriority: 'tensorrt_plan, onnxruntime_onnx', accelerator: ['tensorrt:precision=fp16,workspace=1GiB,trt_engine_cache_enable=1', 'openvino'], memory: '2GiB' },
      { model: { project: 'nlp', name: 'm' }, engine: { formatPriority: ['tensorrt_plan', 'onnxruntime_onnx'], memoryBytes: 2_147_483_648, executionAccelerators: {
        gpu: [{ name: 'tensorrt', precision: 'FP16', maxWorkspaceBytes: 1_073_741_824, parameters: { trt_engine_cache_enable: '1' } }], cpu: [{ name: 'openvino' }] } } }],
    [{ model: 'nlp/m', platform: 'tensorrt_plan', instances: ['gpu:2:0,1', 'CPU'], tensorrtVersion: '10.3.0', computeCapability: '8.6, 8.9' },
      { model: { project: 'nlp', name: 'm' }, engine: { platform: 'tensorrt_plan', instances: [{ kind: 'gpu', count: 2, gpus: [0, 1] }, { kind: 'cpu', count: 1 }], tensorrt: { version: '10.3.0', computeCapability: ['8.6', '8.9'] } } }],
    [{ model: 'nlp/m', computeCapability: 'any', parameter: ['INFERENCE_MODE=true', 'a=b=c'], responseCache: 'true', decoupled: 'false', queueSize: '64' },
      { model: { project: 'nlp', name: 'm' }, engine: { tensorrt: { computeCapability: 'any' }, parameters: { INFERENCE_MODE: 'true', a: 'b=c' }, responseCache: true, decoupled: false, dynamicBatching: { maxQueueSize: 64 } } }],
    [{ model: 'nlp/m', weight: ['3=90', '4=10'] }, { model: { project: 'nlp', name: 'm' }, traffic: { mode: 'weighted', weights: { 3: 90, 4: 10 } } }],
    [{ model: 'nlp/m', newestFirst: '0.1,0.9' }, { model: { project: 'nlp', name: 'm' }, traffic: { mode: 'weighted', newestFirst: [0.1, 0.9] } }],
    [{ model: 'nlp/m', traffic: 'progressive', policy: 'quick', sticky: 'x-user-id' }, { model: { project: 'nlp', name: 'm' }, traffic: { mode: 'progressive', policy: 'quick', sticky: { header: 'x-user-id' } } }],
    [{ model: 'nlp/m', traffic: 'progressive' }, { model: { project: 'nlp', name: 'm' }, traffic: { mode: 'progressive' } }],
    [{ model: 'nlp/m', timeout: '2s', maxBody: '4MiB', access: 'public', pool: 'gpu', label: ['zone=a', 'gpu=h100'], replicas: '2', minReplicas: '1', idempotent: 'false' },
      { model: { project: 'nlp', name: 'm' }, limits: { timeoutMs: 2000, maxBodyBytes: 4_194_304 }, access: { inference: 'public' }, fleet: { pool: 'gpu', labels: { zone: 'a', gpu: 'h100' }, replicas: 2, minReplicas: 1 }, idempotent: false }],
  ])('%j', (flags, spec) => {
    const planned = specFromFlags(flags);
    expect(planned).toEqual(spec);
    whole(planned);
  }); // biome-ignore format: rows
  it.each([
    [{}, '--model'],
    [{ maxVersions: '2' }, '--model'],
    [{ model: 'nlp/m', source: 'box/m' }, '--model or --source'],
    [{ source: 'box/m', versions: '1,x' }, '--versions'],
    [{ model: 'nlp/m@3', tag: ['x'] }, 'serves one version alone'],
    [{ model: 'nlp/m@latest' }, '--model'],
    [{ model: 'nlp/m', replicas: 'two' }, '--replicas'],
    [{ model: 'nlp/m', preferredBatch: '8,x' }, '--preferred-batch'],
    [{ model: 'nlp/m', input: ['ids'] }, '--input'],
    [{ model: 'nlp/m', option: ['a=1'] }, '--option'],
    [{ model: 'nlp/m', idempotent: 'maybe' }, '--idempotent'],
    [{ model: 'nlp/m', responseCache: 'yes' }, '--response-cache: wants true or false'],
    [{ model: 'nlp/m', instances: ['gpu:1:x'] }, '--instances'],
    [{ model: 'nlp/m', instances: ['gpu:1:0:1'] }, '--instances: wants kind:count[:gpus]'],
    [{ model: 'nlp/m', accelerator: [':precision=FP16'] }, '--accelerator: wants a name'],
    [{ model: 'nlp/m', accelerator: ['tensorrt:FP16'] }, '--accelerator'],
    [{ model: 'nlp/m', memory: 'much' }, '--memory'],
    [{ model: 'nlp/m', parameter: ['x'] }, '--parameter'],
  ])('%j is refused, naming %s', (flags, word) => {
    const plan = () => {
      if (!specFromFlags(flags).model) throw new Error('--model');
    };
    expect(plan).toThrow(word);
  });
});

describe('flags over what is there', () => {
  const before = whole({
    model: { project: 'nlp', name: 'm', maxVersions: 2, select: { tags: ['prod'] } },
    processing: { builtin: 'text-embedding', options: { maxTokens: 128 } },
    limits: { timeoutMs: 1_000 },
  });
  it('one way of choosing the format replaces the other; parameters are joined by name', () => {
    const listed = {
      ...before,
      engine: { formatPriority: ['tensorrt_plan', 'python'], parameters: { a: '1', b: '2' }, maxBatchSize: 4 },
    };
    expect(specFromFlags({ platform: 'python' }, listed).engine).toEqual({
      platform: 'python',
      parameters: { a: '1', b: '2' },
      maxBatchSize: 4,
    });
    expect(specFromFlags({ parameter: ['b=3'] }, listed).engine).toEqual({
      ...listed.engine,
      parameters: { a: '1', b: '3' },
    });
    const one = { ...before, engine: { platform: 'python' } };
    expect(specFromFlags({ formatPriority: 'python' }, one).engine).toEqual({ formatPriority: ['python'] });
  });
  it('leaves alone what no flag names', () => {
    expect(specFromFlags({}, before)).toEqual(before);
    expect(specFromFlags({ timeout: '5s' }, before)).toEqual({
      ...before,
      limits: { ...before.limits, timeoutMs: 5_000 },
    });
  });
  it('keeps the rule when versions or tags change', () => {
    expect(specFromFlags({ maxVersions: '3' }, before).model).toEqual({ ...before.model, maxVersions: 3 });
    expect(specFromFlags({ tag: ['x'] }, before).model).toEqual({
      ...before.model,
      select: { ...before.model.select, tags: ['x'] },
    });
    expect(specFromFlags({ model: 'nlp/m' }, before).model).toEqual(before.model);
  });
  it('drops the rule with another model or one version', () => {
    expect(specFromFlags({ model: 'nlp/other' }, before).model).toEqual({ project: 'nlp', name: 'other' });
    expect(specFromFlags({ model: 'nlp/m@7' }, before).model).toEqual({ project: 'nlp', name: 'm', version: 7 });
  });
  it('adds options to the processing, and drops them with another one', () => {
    expect(specFromFlags({ option: ['pooling=cls'] }, before).processing).toEqual({
      builtin: 'text-embedding',
      options: { maxTokens: 128, pooling: 'cls' },
    });
    expect(specFromFlags({ processing: 'passthrough' }, before).processing).toEqual({ builtin: 'passthrough' });
  });
  it('takes the processing away for what the version carries', () => {
    expect('processing' in specFromFlags({ processing: 'version' }, before)).toBe(false);
  });
});
