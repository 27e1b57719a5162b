import { endpointMetrics } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { planMetrics, withoutMetrics } from './metrics.plan.ts';

const before = { sample: 0.5, variables: { x0: { type: 'value' as const }, y: { type: 'value' as const } } };

describe('metrics add', () => {
  it("takes ClearML's flags", () => {
    const flags = {
      variableScalar: ['x0=0,0.5,1', 'x1=0.0/1.0/5'],
      variableEnum: ['animal=cat,dog'],
      variableValue: ['load'],
    };
    const planned = planMetrics(flags, before);
    expect(planned).toEqual({
      sample: 0.5,
      variables: {
        x0: { type: 'scalar', buckets: [0, 0.5, 1] },
        y: { type: 'value' },
        x1: { type: 'scalar', buckets: [0, 0.25, 0.5, 0.75, 1] },
        animal: { type: 'enum', values: ['cat', 'dog'] },
        load: { type: 'value' },
      },
    });
    expect(endpointMetrics.parse(planned)).toEqual(planned);
    expect(planMetrics({ logFreq: '0.1' }, before).sample).toBe(0.1);
    expect(planMetrics({ variableValue: ['a'] }, undefined).sample).toBe(1);
  });

  it.each([
    [{}, 'which metrics?'],
    [{ variableScalar: ['x0'] }, '--variable-scalar x0: wants name=0,0.5,1 or name=0/1/5'],
    [{ variableScalar: ['x0=a'] }, '--variable-scalar x0: "a" is no number'],
    [{ variableScalar: ['x0=1/0/5'] }, 'wants least/greatest/number of buckets'],
    [{ variableEnum: ['=cat'] }, '--variable-enum =cat: wants name=cat,dog'],
    [{ logFreq: 'often' }, '--log-freq: "often" is no number'],
  ])('refuses %j', (flags, message) => {
    expect(() => planMetrics(flags, undefined)).toThrow(message);
  });
});

describe('metrics remove', () => {
  it('removes one, or all', () => {
    expect(withoutMetrics(before, ['x0'], 'e')).toEqual({ sample: 0.5, variables: { y: { type: 'value' } } });
    expect(withoutMetrics(before, ['x0', 'y'], 'e')).toBeUndefined();
    expect(withoutMetrics(before, undefined, 'e')).toBeUndefined();
    expect(() => withoutMetrics(before, ['z'], 'e')).toThrow('endpoint e has no metric z; it has x0, y');
    expect(() => withoutMetrics(undefined, ['z'], 'e')).toThrow('it has none');
  });
});
