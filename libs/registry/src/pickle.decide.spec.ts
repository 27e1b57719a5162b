import { describe, expect, it } from 'vitest';
import { pickledModels } from './pickle.decide.ts';

const file = (path: string) => ({ path, sha256: 'a'.repeat(64), size: 1 });
const files = [file('1/model.py'), file('1/Model.PKL')];

describe('pickled models', () => {
  it('are taken only where somebody said so', () => {
    const metadata = { engine: 'sklearn' };
    expect(pickledModels({ files, metadata, allowPickle: true })).toEqual(['1/Model.PKL']);
    expect(() => pickledModels({ files, metadata })).toThrow(/1\/Model\.PKL is a pickle.*--allow-pickle/);
  });

  it.each([
    ['a Python model of the user that opens its own files', { files }],
    ['a format that holds no code', { files: [file('1/model.json')], metadata: { engine: 'xgboost' } }],
  ])('are none of %s', (_what, wish) => expect(pickledModels(wish)).toEqual([]));
});
