import type { Signature } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { breakingChanges } from './signature.decide.ts';

type Tensor = [name: string, shape: number[], datatype?: 'FP32' | 'INT64', optional?: boolean];
const tensors = (list: Tensor[]) =>
  list.map(([name, shape, datatype = 'FP32', optional]) => ({
    name,
    datatype,
    shape,
    ...(optional ? { optional } : {}),
  }));
const signature = (inputs: Tensor[], outputs: Tensor[] = [['y', [-1, 2]]]): Signature => ({
  inputs: tensors(inputs),
  outputs: tensors(outputs),
});
const stable = signature([['x', [-1, 4]]]);

describe('what callers of stable would find broken', () => {
  it.each<[string, Signature | null, string[]]>([
    ['the same', stable, []],
    ['nothing known', null, []],
    ['no tensors told', signature([], []), []],
    ['a freer input', signature([['x', [-1, -1]]]), []],
    [
      'one more output',
      signature(
        [['x', [-1, 4]]],
        [
          ['y', [-1, 2]],
          ['z', [1]],
        ],
      ),
      [],
    ],
    [
      'one more input that may be left out',
      signature([
        ['x', [-1, 4]],
        ['mask', [-1], 'INT64', true],
      ]),
      [],
    ],
    ['an output of no fixed shape', signature([['x', [-1, 4]]], [['y', [-1, -1]]]), []],
    ['a batch that is fixed', signature([['x', [8, 4]]]), ['input x is FP32 [8, 4], not FP32 [-1, 4]']],
    ['another width', signature([['x', [-1, 8]]]), ['input x is FP32 [-1, 8], not FP32 [-1, 4]']],
    ['another rank', signature([['x', [4]]]), ['input x is FP32 [4], not FP32 [-1, 4]']],
    ['another type', signature([['x', [-1, 4], 'INT64']]), ['input x is INT64 [-1, 4], not FP32 [-1, 4]']],
    ['another name', signature([['ids', [-1, 4]]]), ['input x is gone', 'input ids is new and not optional']],
    ['another output', signature([['x', [-1, 4]]], [['z', [-1, 2]]]), ['output y is gone']],
    ['a wider output', signature([['x', [-1, 4]]], [['y', [-1, 3]]]), ['output y is FP32 [-1, 3], not FP32 [-1, 2]']],
  ])('%s', (_case, candidate, faults) => {
    // biome-ignore format: one row a case
    expect(breakingChanges(stable, candidate)).toEqual(faults);
    expect(breakingChanges(candidate, candidate)).toEqual([]);
  });
});
