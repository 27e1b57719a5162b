import { engineSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { engineContradictions } from './engine-settings.plan.ts';

const state = { inputName: 'i', outputName: 'o', type: 'FP32', dims: [1] };
const warm = { name: 'w', inputs: { x: { type: 'FP32', dims: [4] } } };
const level = { maxBatchSize: 8, dynamicBatching: { priorityLevels: 2, defaultPriorityLevel: 1 } };

describe('settings that exclude one another', () => {
  it.each<[string, object, string | null]>([
    ['nothing said', {}, null],
    ['everything that goes together', {
      formatPriority: ['tensorrt_plan', 'onnxruntime_onnx'], maxBatchSize: 8, responseCache: true, memoryBytes: 1e9,
      tensorrt: { version: '10.3.0', computeCapability: ['8.6', '8.9'] },
      dynamicBatching: { priorityLevels: 2, defaultPriorityLevel: 2, queuePolicy: { timeoutAction: 'delay', defaultTimeoutUs: 5 }, priorityQueuePolicies: { 1: { maxQueueSize: 4 } } },
      instances: [{ kind: 'gpu', gpus: [0], profile: ['1'] }, { passive: true }],
      executionAccelerators: { gpu: [{ name: 'tensorrt', precision: 'FP16', maxWorkspaceBytes: 1 }] }, warmup: [warm],
    }, null],
    ['platform and list', { platform: 'python', formatPriority: ['python'] }, 'engine.formatPriority'],
    ['a format twice', { formatPriority: ['python', 'python'] }, 'engine.formatPriority'],
    ['an ensemble in a list', { formatPriority: ['ensemble', 'python'] }, 'engine.formatPriority'],
    ['two schedulers', { maxBatchSize: 2, dynamicBatching: {}, sequenceBatching: {} }, 'engine.sequenceBatching'],
    ['a cache of sequences', { responseCache: true, sequenceBatching: { states: [state] } }, 'engine.responseCache'],
    ['a cache of many answers', { responseCache: true, decoupled: true }, 'engine.responseCache'],
    ['order and levels', { ...level, dynamicBatching: { ...level.dynamicBatching, preserveOrdering: true } }, 'engine.dynamicBatching.preserveOrdering'],
    ['order and delay', { dynamicBatching: { preserveOrdering: true, queuePolicy: { timeoutAction: 'delay' } } }, 'engine.dynamicBatching.preserveOrdering'],
    ['two queue sizes', { dynamicBatching: { maxQueueSize: 1, queuePolicy: { maxQueueSize: 2 } } }, 'engine.dynamicBatching.queuePolicy'],
    ['levels without one for everybody', { dynamicBatching: { priorityLevels: 2 } }, 'engine.dynamicBatching.defaultPriorityLevel'],
    ['a level that is not there', { dynamicBatching: { priorityLevels: 2, defaultPriorityLevel: 3 } }, 'engine.dynamicBatching.defaultPriorityLevel'],
    ['a policy of a level that is not there', { ...level, dynamicBatching: { ...level.dynamicBatching, priorityQueuePolicies: { 3: {} } } }, 'engine.dynamicBatching.priorityQueuePolicies'],
    ['GPUs of a CPU', { instances: [{ kind: 'cpu', gpus: [0] }] }, 'engine.instances'],
    ['GPUs that the model chooses', { instances: [{ kind: 'model', gpus: [0] }] }, 'engine.instances'],
    ['nothing that runs', { instances: [{ passive: true }] }, 'engine.instances'],
    ['a profile of ONNX', { platform: 'onnxruntime_onnx', instances: [{ kind: 'gpu', profile: ['1'] }] }, 'engine.instances'],
    ['where an ONNX graph was built', { platform: 'onnxruntime_onnx', tensorrt: { version: '10.3' } }, 'engine.tensorrt'],
    ['rows of any shape without rows', { inputs: [{ name: 'x', type: 'FP32', dims: [-1], raggedBatch: true }] }, 'engine.inputs'],
    ['a warm-up twice', { warmup: [warm, warm] }, 'engine.warmup'],
    ['a warm-up above the largest batch', { maxBatchSize: 4, warmup: [{ ...warm, batchSize: 8 }] }, 'engine.warmup'],
    ['a warm-up of an ensemble', { platform: 'ensemble', warmup: [warm] }, 'engine.warmup'],
    ['accelerators of an ensemble', { platform: 'ensemble', executionAccelerators: { gpu: [{ name: 'tensorrt' }] } }, 'engine.optimization'],
    ['a size above the largest batch', { maxBatchSize: 4, sequenceBatching: { oldest: { preferredSizes: [8] } } }, 'engine.sequenceBatching.oldest.preferredSizes'],
  ])('%s', (_what, engine, path) => {
    const faults = engineContradictions(engineSpec.parse(engine));
    expect(faults.map((fault) => fault.path)).toEqual(path === null ? [] : [path]);
  }); // biome-ignore format: one row a case
});
