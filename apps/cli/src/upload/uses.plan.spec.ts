import { describe, expect, it } from 'vitest';
import { usesOf, useText } from './uses.plan.ts';

describe('--uses', () => {
  it.each([
    ['scorer=nlp/scorer', { scorer: { model: 'nlp/scorer', as: 'literal' } }, 'scorer = nlp/scorer'],
    ['scorer=nlp/scorer:3', { scorer: { model: 'nlp/scorer', version: 3, as: 'literal' } }, 'scorer = nlp/scorer@3'],
    [
      'scorer=nlp/scorer@3,as=parameter',
      { scorer: { model: 'nlp/scorer', version: 3, as: 'parameter' } },
      'scorer = nlp/scorer@3 (parameter PERCH_MODEL_scorer)',
    ],
  ])('%s', (text, uses, words) => {
    const parsed = usesOf([text]) as Record<string, Parameters<typeof useText>[1]>;
    expect(parsed).toEqual(uses);
    expect(useText('scorer', parsed['scorer']!)).toBe(words);
  });

  it('nothing given is nothing used', () => {
    expect(usesOf(undefined)).toBeUndefined();
    expect(usesOf([])).toBeUndefined();
  });

  it.each([
    [['scorer'], 'wants name=project/model'],
    [['scorer=scorer'], 'a used model is project/model'],
    [['scorer=a/b,as=something'], 'with as literal or parameter'],
    [['a b=nlp/x'], 'a used name'],
    [['scorer-v1-0123456789ab=nlp/x'], 'must not look like one that Perch gives'],
    [['x=nlp/a', 'x=nlp/b'], 'x is given twice'],
  ])('%j is refused', (texts, words) => {
    expect(() => usesOf(texts)).toThrow(words);
  });
});
