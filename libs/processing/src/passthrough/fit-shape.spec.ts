import { describe, expect, it } from 'vitest';
import { fitShape } from './fit-shape.ts';

const fit = (given: number[], dims: number[], batches: boolean) => {
  const result = fitShape(given, { dims, batches });
  return 'shape' in result ? result.shape : result.fault;
};

describe('fitting a shape', () => {
  it.each<[string, number[], number[], boolean, number[] | string]>([
    ['as the model wants it', [2, 4], [-1, 4], true, [2, 4]],
    ['one example of a batching model', [4], [-1, 4], true, [1, 4]],
    ['one example with open dimensions', [7], [-1, -1], true, [1, 7]],
    ['one picture', [3, 2, 2], [-1, 3, 2, 2], true, [1, 3, 2, 2]],
    ['a flat picture', [12], [-1, 3, 2, 2], true, [1, 3, 2, 2]],
    ['two flat examples', [8], [-1, 4], true, [2, 4]],
    ['flat values where a batch of one fits', [6], [-1, -1, 2], true, [1, 3, 2]],
    ['a bare value', [], [-1, 1], true, [1, 1]],
    ['a bare value for a model without batches', [], [1], false, [1]],
    ['flat values for a model without batches', [6], [2, 3], false, [2, 3]],
    ['flat values with one open dimension', [6], [-1, 3], false, [2, 3]],
    ['exactly, without batches', [2, 3], [2, 3], false, [2, 3]],
    ['a wrong count', [5], [-1, 4], true, 'shape [5], wanted [-1, 4]'],
    ['a wrong inner size', [2, 5], [-1, 4], true, 'shape [2, 5], wanted [-1, 4]'],
    ['nested lists that would need another nesting', [2, 2], [-1, 4], true, 'shape [2, 2], wanted [-1, 4]'],
    ['flat values with two open dimensions', [6], [-1, -1, -1], true, 'shape [6], wanted [-1, -1, -1]'],
    ['a batch where the model has none', [1, 4], [4], false, 'shape [1, 4], wanted [4]'],
    ['an empty list', [0], [-1, 4], true, 'shape [0], wanted [-1, 4]'],
    ['a bare value for more than one', [], [-1, 4], true, 'shape [], wanted [-1, 4]'],
  ])('takes or refuses %s', (_what, given, dims, batches, wanted) => {
    expect(fit(given, dims, batches)).toEqual(wanted);
  });
});
