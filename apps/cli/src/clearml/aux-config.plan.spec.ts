import { engineSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { planAuxConfig } from './aux-config.plan.ts';

describe('--aux-config', () => {
  it.each([
    [[], {}],
    [['platform=\\"onnxruntime_onnx\\"'], { platform: 'onnxruntime_onnx' }],
    [['platform="onnxruntime_onnx"'], { platform: 'onnxruntime_onnx' }],
    [["platform='tensorrt_plan'"], { platform: 'tensorrt_plan' }],
    [['platform=\\\\"onnxruntime_onnx\\\\"'], { platform: 'onnxruntime_onnx' }],
    [['platform=onnxruntime_onnx'], { platform: 'onnxruntime_onnx' }],
    [['backend=\\"pytorch\\"'], { platform: 'pytorch_libtorch' }],
    [['backend="dali"'], { platform: 'dali' }],
    [['default_model_filename=\\"model.bin\\"'], { defaultModelFilename: 'model.bin' }],
    [['max_batch_size=64'], { maxBatchSize: 64 }],
    [['max_batch_size="64"'], { maxBatchSize: 64 }],
    [
      [
        'dynamic_batching.preferred_batch_size="[1,2,4]"',
        'dynamic_batching.max_queue_delay_microseconds=5000000',
        'max_batch_size=64',
      ],
      { maxBatchSize: 64, dynamicBatching: { preferredSizes: [1, 2, 4], maxQueueDelayUs: 5_000_000 } },
    ],
    [
      ['dynamic_batching.preferred_batch_size=[8]', 'max_batch_size=8'],
      { maxBatchSize: 8, dynamicBatching: { preferredSizes: [8] } },
    ],
    [['response_cache.enable=true'], { config: 'response_cache {\n  enable: true\n}\n' }],
    [
      ['input.0.format=FORMAT_NCHW', 'input.0.name=\\"image\\"', 'output.0.name="scores"'],
      { config: 'input {\n  format: FORMAT_NCHW\n  name: "image"\n}\noutput {\n  name: "scores"\n}\n' },
    ],
    [
      ['version_policy.specific.versions=[1]'],
      { config: 'version_policy {\n  specific {\n    versions: [ 1 ]\n  }\n}\n' },
    ],
  ])('%j', (pairs, engine) => {
    const planned = planAuxConfig(pairs);
    expect(planned).toEqual(engine);
    expect(engineSpec.safeParse(planned).success).toBe(true);
  });
  it.each([['platform'], ['=x'], ['1.2=3'], ['a b']])('refuses %s, naming it', (pair) => {
    expect(() => planAuxConfig([pair])).toThrow(
      `--aux-config: wants key=value pairs or one config.pbtxt file, got "${pair}"`,
    );
  });
  it('refuses a batch size that is no number, and a value below a value', () => {
    expect(() => planAuxConfig(['max_batch_size=many'])).toThrow(/max_batch_size: wants a whole number/);
    expect(() => planAuxConfig(['response_cache=[1]', 'response_cache.enable=true'])).toThrow(
      /another pair gave a value/,
    );
  });
});
