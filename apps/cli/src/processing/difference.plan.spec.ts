import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { differences, differenceText } from './difference.plan.ts';

const exact = { absolute: 0, relative: 0 };
const loose = { absolute: 1e-6, relative: 1e-5 };
const words = (wanted: unknown, got: unknown, tolerance = loose) =>
  differences(wanted, got, tolerance).map(differenceText);

describe('where a reply is not the wanted one', () => {
  it.each([
    ['equal', { a: [1, 'x', null, true] }, { a: [1, 'x', null, true] }, []],
    ['a number within the tolerance', { y: 1 }, { y: 1.000009 }, []],
    ['members in another order', { a: 1, b: 2 }, { b: 2, a: 1 }, []],
    [
      'a number beyond it',
      { y: [1, 2] },
      { y: [1, 2.1] },
      ['y[1]: wanted 2, got 2.1 (differs by 0.1, at most 0.000021)'],
    ],
    [
      'another text',
      { labels: [{ name: 'good' }] },
      { labels: [{ name: 'bad' }] },
      ['labels[0].name: wanted "good", got "bad"'],
    ],
    ['a member less', { a: 1, b: 2 }, { a: 1 }, ['b: wanted 2, got nothing']],
    ['a member more', { a: 1 }, { a: 1, b: [2] }, ['b: not wanted, got [2]']],
    ['a list of another length', [1, 2], [1], ['the reply: wanted 2 elements, got 1']],
    ['another kind of value', { a: [1] }, { a: { 0: 1 } }, ['a: wanted [1], got {"0":1}']],
    ['null for a number', { a: 1 }, { a: null }, ['a: wanted 1, got null']],
    ['a number for its text', { a: '1' }, { a: 1 }, ['a: wanted "1", got 1']],
  ])('%s', (_name, wanted, got, expected) => expect(words(wanted, got)).toEqual(expected));

  it('tells at most 20', () => {
    expect(
      words(
        Array.from({ length: 50 }, () => 1),
        Array.from({ length: 50 }, () => 2),
      ),
    ).toHaveLength(20);
  });

  it('any JSON equals itself, and differs from itself with one thing more', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(differences(JSON.parse(text), JSON.parse(text), exact)).toEqual([]);
        expect(differences({ value: JSON.parse(text) }, { value: JSON.parse(text), more: 1 }, loose)).toHaveLength(1);
        expect(differences([JSON.parse(text)], [JSON.parse(text), 0], loose)).toHaveLength(1);
      }),
    );
  });
});
