import { describe, expect, it } from 'vitest';
import {
  checkSizes,
  describingChange,
  listOf,
  metadataFilter,
  mostTags,
  tagsChange,
  totalBytes,
} from './version.plan.ts';

const a = 'a'.repeat(64);
const file = (path: string, size: number, sha256 = a) => ({ path, size, sha256 });

describe('describingChange', () => {
  const now = { description: 'old', metadata: { owner: 'ann' }, lineage: { gitCommit: 'abc' } };
  it.each([
    ['nothing given', {}, {}],
    ['all the same', now, {}],
    ['a new description', { description: 'new' }, { description: 'new' }],
    ['an emptied one', { description: '' }, { description: '' }],
    ['metadata are replaced whole', { metadata: { a: '1' } }, { metadata: { a: '1' } }],
    ['metadata emptied', { metadata: {} }, { metadata: {} }],
    ['lineage', { lineage: { gitCommit: 'def' } }, { lineage: { gitCommit: 'def' } }],
    ['lineage with an absent member', { lineage: { gitCommit: 'abc', parent: undefined } }, {}],
  ])('%s', (_case, wish, change) => expect(describingChange(now, wish)).toEqual(change));
});

describe('tagsChange', () => {
  it.each([
    ['one more', ['b'], { add: ['a'], remove: [] }, ['a', 'b']],
    ['one less', ['a', 'b'], { add: [], remove: ['a'] }, ['b']],
    ['swapped', ['a'], { add: ['b'], remove: ['a'] }, ['b']],
    ['added and removed is removed', ['a'], { add: ['b'], remove: ['b'] }, undefined],
    ['there already', ['a'], { add: ['a'], remove: [] }, undefined],
    ['not there anyway', ['a'], { add: [], remove: ['c'] }, undefined],
  ])('%s', (_case, now, change, after) => expect(tagsChange(now, change, 'v')).toEqual(after));

  it('names the version when there are too many', () => {
    const add = Array.from({ length: mostTags + 1 }, (_, n) => `t${n}`);
    expect(() => tagsChange([], { add, remove: [] }, 'version 1 of model a/b')).toThrow(
      'version 1 of model a/b would have 65 tags',
    );
  });
});

describe('manifest sums', () => {
  it('adds sizes', () => expect(totalBytes([file('x', 1), file('y', 2)])).toBe(3));
  it('refuses one hash with two sizes by the names of both files', () => {
    expect(() => checkSizes([file('x', 1), file('y', 1)])).not.toThrow();
    expect(() => checkSizes([file('x', 1), file('y', 2)])).toThrow('x and y');
  });
});

describe('search words', () => {
  it('reads key=value, also with "=" in the value', () =>
    expect(metadataFilter(['owner=ann', 'q=a=b', 'empty='])).toEqual({ owner: 'ann', q: 'a=b', empty: '' }));
  it.each(['owner', '=ann', ''])('refuses %j by its text', (text) =>
    expect(() => metadataFilter([text])).toThrow(JSON.stringify(text)),
  );
  it('takes one or many', () =>
    expect([listOf(undefined), listOf('a'), listOf(['a', 'b'])]).toEqual([[], ['a'], ['a', 'b']]));
});
