import { describe, expect, it } from 'vitest';
import { planTemplate } from './python-template.plan.ts';

describe('a model file behind the Python template', () => {
  it('brings its configuration, and the Python model that opens it', () => {
    const plan = planTemplate({
      engine: 'xgboost',
      file: 'model.ubj',
      allowPickle: false,
      features: 4,
      method: 'predict',
    });
    expect(plan.modelPath).toBe('1/model.ubj');
    expect(plan.pickle).toBe(false);
    expect(Object.keys(plan.texts)).toEqual(['config.pbtxt', '1/model.py']);
    expect(plan.texts['config.pbtxt']).toContain('input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]');
    expect(plan.texts['config.pbtxt']).toContain('key: "file" value: { string_value: "model.ubj" }');
  });

  it.each([
    ['sklearn', 'model.pkl'],
    ['sklearn', 'Model.JOBLIB'],
    ['xgboost', 'model.pickle'],
    ['lightgbm', 'model.pkl'],
  ] as const)('%s: %s wants somebody to allow it', (engine, file) => {
    expect(() => planTemplate({ engine, file, allowPickle: false })).toThrow(/is a pickle.*--allow-pickle/);
    expect(planTemplate({ engine, file, allowPickle: true }).pickle).toBe(true);
  });

  it.each([
    [
      { engine: 'sklearn', file: 'model.txt' },
      /--engine sklearn: model\.txt is of no kind that is known, wanted \.pkl/,
    ],
    [{ engine: 'lightgbm', file: 'model.json' }, /wanted \.txt/],
    [{ engine: 'xgboost', file: 'model.json', method: 'guess' }, /--method: wants predict/],
    [{ engine: 'xgboost', file: 'model.json', outputType: 'BYTES' }, /--output-type: wants FP32/],
  ] as const)('refuses %j', (wish, words) => expect(() => planTemplate({ allowPickle: true, ...wish })).toThrow(words));
});
