import { parseGolden } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { goldenFault } from './golden.decide.ts';

const input = { name: 'x', datatype: 'FP32', shape: [1, 2], data: [[1, 2]] };
const golden = (outputs: object[], more: object = {}) =>
  parseGolden(JSON.stringify({ request: { inputs: [input] }, outputs, ...more }), 'golden/a.json');
const y = (data: unknown[], datatype = 'FP32', shape = [1, data.length]) => ({ name: 'y', datatype, shape, data });

describe('an answer beside the golden one', () => {
  it.each<[string, object[], object, ReturnType<typeof y>[], string | undefined]>([
    ['the same', [{ name: 'y', data: [0.5, 1] }], {}, [y([0.5, 1])], undefined],
    ['nested or flat', [{ name: 'y', data: [[0.5], [1]] }], {}, [y([0.5, 1])], undefined],
    ['within the tolerance', [{ name: 'y', data: [1000] }], {}, [y([1000.9])], undefined],
    [
      'beyond it',
      [
        {
          name: 'y',
          data: [
            [1, 2, 3],
            [4, 5, 6],
          ],
        },
      ],
      {},
      [y([1, 2, 3, 4, 5.1, 7], 'FP32', [2, 3])],
      'output y differs at [1,1]: wanted 5, got 5.1 (and 1 more of 6)',
    ],
    ['a tolerance of its own', [{ name: 'y', data: [5], tolerance: { absolute: 0.2 } }], {}, [y([5.1])], undefined],
    ['a tolerance for all', [{ name: 'y', data: [5] }], { tolerance: { absolute: 0.2 } }, [y([5.1])], undefined],
    [
      'whole numbers have none',
      [{ name: 'y', data: [1000] }],
      {},
      [y([1001], 'INT64')],
      'output y differs at [0,0]: wanted 1000, got 1001',
    ],
    [
      'texts',
      [{ name: 'y', data: ['1'] }],
      {},
      [y(['1.0'], 'BYTES')],
      'output y differs at [0,0]: wanted "1", got "1.0"',
    ],
    ['truth', [{ name: 'y', data: [true, false] }], {}, [y([true, 0], 'BOOL')], undefined],
    [
      'a lie',
      [{ name: 'y', data: [true] }],
      {},
      [y([false], 'BOOL')],
      'output y differs at [0,0]: wanted true, got false',
    ],
    ['no number', [{ name: 'y', data: [1] }], {}, [y([null])], 'output y differs at [0,0]: wanted 1, got null'],
    ['fewer values', [{ name: 'y', data: [1, 2] }], {}, [y([1])], 'output y differs: wanted 2 values, got 1'],
    [
      'another shape',
      [{ name: 'y', shape: [2, 1], data: [1, 2] }],
      {},
      [y([1, 2])],
      'output y differs: wanted shape [2,1], got [1,2]',
    ],
    [
      'another type',
      [{ name: 'y', datatype: 'FP64', data: [1] }],
      {},
      [y([1])],
      'output y differs: wanted datatype FP64, got FP32',
    ],
    ['nothing of it', [{ name: 'z', data: [1] }], {}, [y([1])], 'output z is missing (got y)'],
    [
      'what half precision holds of it',
      [{ name: 'y', data: [0.3] }],
      { tolerance: { absolute: 0, relative: 0 } },
      [{ ...y([0.30078125]), datatype: 'BF16' }],
      undefined,
    ],
    [
      'not a number',
      [{ name: 'y', data: [1] }],
      {},
      [{ ...y([Number.NaN]), datatype: 'FP16' }],
      'output y differs at [0,0]: wanted 1, got NaN',
    ],
    ['more than was named', [{ name: 'y', data: [1] }], {}, [y([1]), { ...y([2]), name: 'z' }], undefined],
  ])('%s', (_what, outputs, more, answered, fault) => expect(goldenFault(golden(outputs, more), answered)).toBe(fault));
});

describe('what a golden request may be', () => {
  const outputs = [{ name: 'y', data: [1] }];
  it.each<[string, string, string]>([
    ['no JSON', '{', 'is no JSON'],
    ['no outputs', JSON.stringify({ request: { inputs: [input] } }), 'outputs'],
    ['empty outputs', JSON.stringify({ request: { inputs: [input] }, outputs: [] }), 'outputs'],
    ['no inputs', JSON.stringify({ request: { inputs: [] }, outputs }), 'request.inputs'],
    ['a field nobody knows', JSON.stringify({ request: { inputs: [input] }, outputs, tolerence: 1 }), 'tolerence'],
    [
      'too few values',
      JSON.stringify({ request: { inputs: [{ ...input, data: [1] }] }, outputs }),
      'golden/a.json: input x: shape [1,2] wants 2 values, data has 1',
    ],
    [
      'an object as a value',
      JSON.stringify({ request: { inputs: [{ ...input, data: [1, {}] }] }, outputs }),
      'input x: {} is no number',
    ],
    [
      'a text in half precision',
      JSON.stringify({ request: { inputs: [{ ...input, datatype: 'FP16', data: [1, '2'] }] }, outputs }),
      'input x: "2" is no number that FP16 can hold',
    ],
    [
      'what half precision cannot hold',
      JSON.stringify({
        request: { inputs: [input] },
        outputs: [{ name: 'y', datatype: 'FP16', data: [65_504, -65_520] }],
      }),
      'output y: -65520 is no number that FP16 can hold',
    ],
    [
      'a truth value as BF16',
      JSON.stringify({ request: { inputs: [{ ...input, datatype: 'BF16', data: [1, true] }] }, outputs }),
      'input x: true is no number that BF16 can hold',
    ],
    [
      'a name twice',
      JSON.stringify({ request: { inputs: [input] }, outputs: [...outputs, ...outputs] }),
      'output y stands there twice',
    ],
    [
      'a negative tolerance',
      JSON.stringify({ request: { inputs: [input] }, outputs, tolerance: { absolute: -1 } }),
      'tolerance.absolute',
    ],
  ])('%s is refused', (_what, text, words) => expect(() => parseGolden(text, 'golden/a.json')).toThrow(words));
});
