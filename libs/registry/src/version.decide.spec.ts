import { versionStates } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { decideState, type VersionVerb } from './version.decide.ts';

const verbs: VersionVerb[] = ['publish', 'unpublish', 'archive', 'restore'];
/** For each state, in the order of the verbs; null: refused. */
const table = {
  uploading: [null, null, null, null],
  draft: ['published', 'draft', 'archived', 'draft'],
  published: ['published', 'draft', 'archived', null],
  archived: [null, null, 'archived', 'draft'],
} as const;

describe('decideState', () => {
  const cases = versionStates.flatMap((state) => verbs.map((verb, at) => [state, verb, table[state][at]] as const));
  it.each(cases)('%s, %s → %s', (state, verb, to) => {
    const decide = () => decideState(state, verb, 'version 3 of model nlp/minilm');
    if (to) return expect(decide()).toBe(to);
    expect(decide).toThrow(`cannot ${verb} version 3 of model nlp/minilm: it is ${state}; `);
  });

  it.each(cases.filter(([, , to]) => to))('%s, %s twice is the same as once', (state, verb) => {
    const once = decideState(state, verb, 'v');
    expect(decideState(once, verb, 'v')).toBe(once);
  });

  it('says what to do first', () => {
    expect(() => decideState('uploading', 'publish', 'v')).toThrow('complete its upload first');
    expect(() => decideState('archived', 'publish', 'v')).toThrow('restore it first');
    expect(() => decideState('published', 'restore', 'v')).toThrow('it is published; only an archived version can be');
  });
});
