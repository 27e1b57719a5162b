import type { ResolvedEngine } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseModelConfig } from './model-config.ts';
import { renderModelConfig } from './render-config.ts';

const engine = (over: Partial<ResolvedEngine> = {}): ResolvedEngine => ({
  platform: 'onnxruntime_onnx',
  backend: 'onnxruntime',
  maxBatchSize: 8,
  dynamicBatching: null,
  instances: [],
  inputs: [{ name: 'ids', type: 'INT64', dims: [-1] }],
  outputs: [{ name: 'text', type: 'BYTES', dims: [1] }],
  parameters: {},
  defaultModelFilename: null,
  config: null,
  ...over,
});
const rendered = (over: Partial<ResolvedEngine> = {}, gpus = 0) =>
  parseModelConfig(renderModelConfig('m', engine(over), { gpus }));

describe('rendering a configuration', () => {
  it('writes our settings', () => {
    const config = rendered({
      dynamicBatching: { preferredSizes: [4, 8], maxQueueDelayUs: 500, maxQueueSize: 64, preserveOrdering: true },
      instances: [{ kind: 'cpu', count: 2 }],
      parameters: { owner: 'team-a' },
      defaultModelFilename: 'net.onnx',
    });
    expect(config).toEqual({
      name: 'm',
      platform: 'onnxruntime_onnx',
      max_batch_size: 8,
      input: [{ name: 'ids', data_type: 'TYPE_INT64', dims: [-1] }],
      output: [{ name: 'text', data_type: 'TYPE_STRING', dims: [1] }],
      dynamic_batching: {
        preferred_batch_size: [4, 8],
        max_queue_delay_microseconds: 500,
        preserve_ordering: true,
        default_queue_policy: { max_queue_size: 64 },
      },
      instance_group: [{ kind: 'KIND_CPU', count: 2 }],
      default_model_filename: 'net.onnx',
      parameters: { owner: { string_value: 'team-a' } },
    });
  });

  it('says the back-end of a platform that Triton does not know as one', () => {
    expect(rendered({ platform: 'python', backend: 'python' })).toMatchObject({ backend: 'python' });
    expect(rendered({ platform: 'my_backend', backend: '' })).toMatchObject({ backend: 'my_backend' });
    expect(rendered({ platform: 'tensorrt_plan', backend: 'tensorrt' })).toMatchObject({ platform: 'tensorrt_plan' });
  });

  it('keeps batching that is on with defaults, and switches nothing on by itself', () => {
    expect(rendered({ dynamicBatching: {} }).dynamic_batching).toEqual({});
    expect(rendered().dynamic_batching).toBeUndefined();
  });

  it('places instances by what the server has', () => {
    expect(rendered().instance_group).toEqual([{ kind: 'KIND_CPU', count: 1 }]);
    expect(rendered({ instances: [{ kind: 'auto', count: 3 }] }).instance_group).toEqual([
      { kind: 'KIND_CPU', count: 3 },
    ]);
    expect(rendered({ instances: [{ kind: 'auto', count: 3 }] }, 1).instance_group).toEqual([{ count: 3 }]);
    expect(rendered({ instances: [{ kind: 'gpu', count: 1, gpus: [0] }] }, 1).instance_group).toEqual([
      { kind: 'KIND_GPU', count: 1, gpus: [0] },
    ]);
    expect(rendered({}, 2).instance_group).toBeUndefined();
    expect(() => rendered({ instances: [{ kind: 'gpu', count: 1 }] })).toThrow(
      /configuration of m: instance_group wants a GPU and the server has none/,
    );
    const steps = `ensemble_scheduling { step { model_name: "a"
      input_map { key: "x" value: "ids" } output_map { key: "y" value: "text" } } }`;
    const ensemble = rendered({ platform: 'ensemble', config: steps });
    expect(ensemble.instance_group).toBeUndefined();
  });
});

describe("the user's own text", () => {
  it('wins except for the name', () => {
    const config = rendered({
      dynamicBatching: { preferredSizes: [4], maxQueueDelayUs: 100 },
      parameters: { a: '1', b: '2' },
      config: `name: "other" max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 900 }
        input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } parameters { key: "b" value { string_value: "3" } }
        optimization { graph { level: -1 } }`,
    });
    expect(config).toMatchObject({
      name: 'm',
      max_batch_size: 16,
      dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 900 },
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [2] }],
      output: [{ name: 'text' }],
      parameters: { a: { string_value: '1' }, b: { string_value: '3' } },
      optimization: { graph: { level: -1 } },
    });
  });

  it('replaces the back-end as a whole, and the other scheduler', () => {
    const config = rendered({
      dynamicBatching: { preferredSizes: [4] },
      config: 'backend: "python" sequence_batching { max_sequence_idle_microseconds: 5 }',
    });
    expect(config.backend).toBe('python');
    expect(config.platform).toBeUndefined();
    expect(config.dynamic_batching).toBeUndefined();
    expect(config.sequence_batching).toEqual({ max_sequence_idle_microseconds: 5 });
  });

  it.each([
    ['version_policy { all {} }', /the config text of m has a version_policy: .*maxVersions/],
    ['nonsense: 1', /the config text of m, line 1, column 1: ModelConfig has no field named "nonsense"/],
    [
      'max_batch_size: 2 dynamic_batching { preferred_batch_size: 4 }',
      /configuration of m: preferred_batch_size 4 is not between 1 and max_batch_size 2/,
    ],
  ])('%s is refused', (config, words) => {
    expect(() => rendered({ config })).toThrow(words);
  });

  it('that is blank changes nothing', () => {
    expect(rendered({ config: ' \n# only a comment\n' })).toEqual(rendered());
  });
});
