import { type DesiredModel, resolvedEngine } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { downgradeModel } from './document.downgrade.plan.ts';

const engine = {
  platform: 'onnxruntime_onnx', backend: 'onnxruntime', maxBatchSize: 8, dynamicBatching: { preferredSizes: [4], maxQueueSize: 9 },
  instances: [{ kind: 'gpu', count: 1, gpus: [0], profile: ['0'] }], inputs: [{ name: 'x', type: 'FP32', dims: [4], optional: true }],
  outputs: [], parameters: {}, defaultModelFilename: null, config: null,
}; // biome-ignore format: one record
const down = (more: object) =>
  downgradeModel({ files: [], digest: 'd', engine: { ...engine, ...more } } as unknown as DesiredModel);

describe('engine settings for a reader of the schema before', () => {
  it('are handed on where it has them all', () => expect(down({})).not.toBeNull());

  it.each<[string, object]>([
    ['a new setting', { responseCache: true }],
    ['a text of the version below', { configBelow: '' }],
    ['a new word of batching', { dynamicBatching: { priorityLevels: 2 } }],
    ['a new word of instances', { instances: [{ kind: 'cpu', count: 1, passive: true }] }],
    ['a new word of tensors', { outputs: [{ name: 'y', type: 'FP32', dims: [4], labelFile: 'l' }] }],
  ])('are held back with %s', (_what, more) => expect(down(more)).toBeNull());
});

describe('engine settings of a later release', () => {
  it('are read without what is not known', () => {
    const later = {
      ...engine,
      colour: 1,
      dynamicBatching: { maxQueueSize: 9, colour: 1 },
      instances: [{ kind: 'cpu', count: 1, colour: 1 }],
    };
    expect(resolvedEngine.parse(later)).toEqual({
      ...engine,
      dynamicBatching: { maxQueueSize: 9 },
      instances: [{ kind: 'cpu', count: 1 }],
    });
  });
});
