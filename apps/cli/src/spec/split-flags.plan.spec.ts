import { describe, expect, it } from 'vitest';
import { splitFromFlags } from './split-flags.plan.ts';

const split = { kind: 'Split', name: 's' };
const fixed = { targets: ['a', 'b/2'], weights: [90, 10], sticky: { header: 'x-user' }, description: 'd' };

describe('splitFromFlags', () => {
  it.each([
    [{ target: ['a=90', 'b/2=10'] }, {}, { targets: ['a', 'b/2'], weights: [90, 10] }],
    [{ target: ['a'] }, {}, { targets: ['a'], weights: [1] }],
    [{ prefix: 'text/', newestFirst: '0.1,0.9' }, {}, { targetPrefix: 'text/', newestFirst: [0.1, 0.9] }],
    [{ sticky: 'x-user', access: 'public' }, {}, { sticky: { header: 'x-user' }, access: { inference: 'public' } }],
    [{}, fixed, fixed],
    [{ target: ['c=1'] }, fixed, { ...fixed, targets: ['c'], weights: [1] }],
    [{ sticky: 'none' }, fixed, { targets: ['a', 'b/2'], weights: [90, 10], description: 'd' }],
    [{ newestFirst: '1,2' }, { targetPrefix: 'p', newestFirst: [3] }, { targetPrefix: 'p', newestFirst: [1, 2] }],
    [
      { prefix: 'q', newestFirst: '1' },
      { targets: ['a'], weights: [1] },
      { targetPrefix: 'q', newestFirst: [1] },
    ],
  ])('%j over %j', (flags, before, spec) => expect(splitFromFlags('s', flags, before)).toEqual({ ...split, ...spec }));

  it.each([
    [{ target: ['a', 'b'] }, 'target=weight'],
    [{ target: ['a=x'] }, 'wants a number'],
    [{ target: ['a='] }, 'wants a number'],
    [{ target: ['a=NaN'] }, 'wants a number'],
    [{ target: ['a=Infinity'] }, 'wants a number'],
    [{ target: ['a=-1'] }, 'not below zero'],
    [{ target: ['a=1'], prefix: 'p' }, 'not both'],
    [{ prefix: 'p', newestFirst: '1,x' }, '--newest-first'],
  ])('%j is refused', (flags, words) => expect(() => splitFromFlags('s', flags)).toThrow(words));
});
