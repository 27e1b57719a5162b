import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { metricWeights, weightedEvidence } from './metric-weights.decide.ts';

describe('metricWeights', () => {
  it.each([
    [[], []],
    [['error'], [1]],
    [
      ['error', 'slow'],
      [0.75, 0.25],
    ],
    [
      ['error', 'contract'],
      [0.75, 0.25],
    ],
    [
      ['error', 'slow', 'contract'],
      [0.75, 0.125, 0.125],
    ],
    [
      ['error', 'flagged'],
      [0.75, 0.25],
    ],
    [
      ['error', 'slow', 'contract', 'flagged'],
      [0.5, 0.125, 0.125, 0.25],
    ],
    [
      ['error', 'slow', 'contract', 'a', 'b'],
      [0.5, 0.125, 0.125, 0.125, 0.125],
    ],
    [
      ['slow', 'contract'],
      [0.5, 0.5],
    ],
    [
      ['slow', 'flagged'],
      [0.5, 0.5],
    ],
    [
      ['a', 'b', 'c', 'd'],
      [0.25, 0.25, 0.25, 0.25],
    ],
  ])('of %j', (metrics, wanted) => expect(metricWeights(metrics)).toEqual(wanted));

  it('add up to 1', () => {
    const metrics = fc.uniqueArray(fc.constantFrom('error', 'slow', 'contract', 'a', 'b', 'c'), { minLength: 1 });
    fc.assert(
      fc.property(metrics, (given) => {
        expect(metricWeights(given).reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 12);
      }),
    );
  });
});

describe('weightedEvidence', () => {
  it('is the weighted mean', () => expect(weightedEvidence([Math.log(20), 0], [0.75, 0.25])).toBeCloseTo(15.25, 12));
  it('of nothing is 1', () => expect(weightedEvidence([], [])).toBe(1));
  it('stays finite', () => expect(Number.isFinite(weightedEvidence([1e9, -1e9], [0.5, 0.5]))).toBe(true));
});
