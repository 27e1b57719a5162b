import { describe, expect, it } from 'vitest';
import type { GraphTensor } from '../session/onnx-session.ts';
import { completeConfig, graphFault } from './complete-config.ts';

const tensor = (name: string, ...shape: number[]): GraphTensor => ({ name, datatype: 'FP32', shape });
const graph = { inputs: [tensor('x', -1, 4)], outputs: [tensor('y', -1, 2)] };
const x = { name: 'x', data_type: 'TYPE_FP32', dims: [4] };
const y = { name: 'y', data_type: 'TYPE_FP32', dims: [2] };

describe('completeConfig', () => {
  it('makes a model batch when all its first sizes are free and nothing was said', () => {
    expect(completeConfig({ name: 'm' }, graph)).toEqual({
      name: 'm',
      platform: 'onnxruntime_onnx',
      backend: 'onnxruntime',
      max_batch_size: 4,
      dynamic_batching: {},
      input: [x],
      output: [y],
    });
  });

  it('keeps what was given', () => {
    expect(completeConfig({ max_batch_size: 16 }, graph)).toMatchObject({
      max_batch_size: 16,
      input: [x],
      output: [y],
    });
    expect(completeConfig({ max_batch_size: 16 }, graph).dynamic_batching).toBeUndefined();
    const full = completeConfig({ input: [{ ...x, dims: [-1, 4] }], output: [{ ...y, dims: [-1, 2] }] }, graph);
    expect(full.max_batch_size).toBeUndefined();
    const half = completeConfig({ input: [{ ...x, dims: [-1, 4] }] }, graph);
    expect(half.output).toEqual([{ ...y, dims: [-1, 2] }]);
  });

  it('takes fixed shapes as they stand, and refuses to batch them', () => {
    const fixed = { inputs: [tensor('x', 3, 4)], outputs: [tensor('y', 3)] };
    expect(completeConfig({}, fixed)).toMatchObject({ input: [{ dims: [3, 4] }], output: [{ dims: [3] }] });
    expect(() => completeConfig({ max_batch_size: 2 }, fixed)).toThrow(/does not support batching/);
  });

  it('gives a tensor that is nothing but a batch one element a row', () => {
    const flat = { inputs: [tensor('x', -1)], outputs: [tensor('y', -1)] };
    expect(completeConfig({}, flat).input).toEqual([
      { name: 'x', data_type: 'TYPE_FP32', dims: [1], reshape: { shape: [] } },
    ]);
  });
});

describe('graphFault', () => {
  const config = { max_batch_size: 8, input: [x], output: [y] };
  it.each([
    ['nothing', config, undefined],
    [
      'an input of another name',
      { ...config, input: [{ ...x, name: 'ids' }] },
      /unexpected inference input 'ids', allowed inputs are: x/,
    ],
    [
      'an output of another name',
      { ...config, output: [{ ...y, name: 'z' }] },
      /unexpected inference output 'z', allowed outputs are: y/,
    ],
    [
      'another type',
      { ...config, input: [{ ...x, data_type: 'TYPE_INT64' }] },
      /input 'x' is INT64 in the configuration and FP32 in the model/,
    ],
    [
      'another size',
      { ...config, input: [{ ...x, dims: [5] }] },
      /expects the shape \[-1,4\] and the configuration says \[-1,5\]/,
    ],
    ['another rank', { ...config, max_batch_size: 0 }, /the configuration says \[4\]/],
    ['an input that is not configured', { ...config, input: [] }, /wants the inputs 'x', which are not configured/],
    ['a free size for a fixed one', { ...config, input: [{ ...x, dims: [-1] }] }, undefined],
  ])('finds %s', (_what, given, words) => {
    const fault = graphFault(given, graph);
    if (words) expect(fault).toMatch(words);
    else expect(fault).toBeUndefined();
  });
});
