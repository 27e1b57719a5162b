import { describe, expect, it } from 'vitest';
import { nameConflict, namesToLock, splitVersionLabel } from './name.plan.ts';

describe('names that look like versions', () => {
  it.each([
    ['text/a/7', { parent: 'text/a', version: 7 }],
    ['a/7', { parent: 'a', version: 7 }],
    ['7', undefined],
    ['a/07', undefined],
    ['a/v7', undefined],
    ['a/0', undefined],
    ['a/7b', undefined],
  ])('%s', (name, split) => expect(splitVersionLabel(name)).toEqual(split));

  const rule = (name: string) => ({ name, onlyVersion: null });
  const fixed = (name: string, onlyVersion: number) => ({ name, onlyVersion });
  it.each([
    ['E/7 beside E with a rule', rule('E/7'), [rule('E')], 'would hide version 7 of endpoint E'],
    ['E/7 beside E fixed to 7', rule('E/7'), [fixed('E', 7)], 'would hide version 7'],
    ['E/7 beside E fixed to 8', rule('E/7'), [fixed('E', 8)], undefined],
    ['E with a rule beside E/7', rule('E'), [rule('E/7')], 'endpoint E/7 hides version 7 of endpoint E'],
    ['E fixed to 8 beside E/7', fixed('E', 8), [rule('E/7')], undefined],
    ['E fixed to 7 beside E/7', fixed('E', 7), [rule('E/7')], 'hides version 7'],
    ['E beside E/v7', rule('E'), [rule('E/v7')], undefined],
    ['E beside E/a/7', rule('E'), [rule('E/a/7')], undefined],
    ['E beside itself', rule('E'), [rule('E')], undefined],
    ['alone', rule('E/7'), [], undefined],
  ])('%s', (_what, wanted, others, words) => {
    const conflict = nameConflict(wanted, others);
    if (words === undefined) expect(conflict).toBeUndefined();
    else expect(conflict).toContain(words);
  });

  it('locks the name and the endpoint it could hide, always in the same order', () => {
    expect(namesToLock('b/7')).toEqual(['b', 'b/7']);
    expect(namesToLock('b')).toEqual(['b', 'b']);
  });
});
