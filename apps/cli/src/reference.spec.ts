import { describe, expect, it } from 'vitest';
import { parseModel, parsePairs, parseReference } from './reference.ts';

describe('references', () => {
  it.each([
    ['nlp/minilm', undefined, undefined],
    ['nlp/minilm@3', undefined, 3],
    ['nlp/minilm:3', undefined, 3],
    ['nlp/minilm/3', undefined, 3],
    ['nlp/minilm@v3', undefined, 3],
    ['nlp/minilm', '3', 3],
    ['nlp/minilm@3', '3', 3],
    ['nlp/minilm@latest', undefined, 'latest'],
    ['nlp/minilm', 'latest', 'latest'],
  ])('%s %s names version %s', (text, version, number) => {
    expect(parseReference(text, version)).toEqual({ project: 'nlp', name: 'minilm', number });
  });
  it.each([
    ['minilm', undefined],
    ['nlp/', undefined],
    ['../etc', undefined],
    ['nlp/min lm', undefined],
    ['nlp/minilm@0', undefined],
    ['nlp/minilm@new', undefined],
    ['nlp/minilm@3', '4'],
  ])('refuses %s %s, naming it', (text, version) => {
    expect(() => parseReference(text, version)).toThrow(`model "${text}"`);
  });
  it('wants no version where a model is meant', () => {
    expect(() => parseModel('nlp/minilm@3')).toThrow(/without a version/);
  });
  it('reads pairs, and keeps further equals signs', () => {
    expect(parsePairs(['a=1', 'b=x=y', 'c='], '--metadata')).toEqual({ a: '1', b: 'x=y', c: '' });
    expect(() => parsePairs(['a'], '--metadata')).toThrow('--metadata: wants key=value, got "a"');
  });
});
