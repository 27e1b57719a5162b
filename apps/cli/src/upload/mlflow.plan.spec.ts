import { describe, expect, it } from 'vitest';
import { planMlflow } from './mlflow.plan.ts';

const signature = {
  inputs: '[{"type": "tensor", "name": "x", "tensor-spec": {"dtype": "float32", "shape": [-1, 4]}}]',
  outputs: '[{"type": "tensor", "tensor-spec": {"dtype": "float32", "shape": [-1, 2]}}]',
};
const plain = { python_function: { loader_module: 'mlflow.onnx' } };

describe('an MLflow folder', () => {
  it('is taken by its onnx flavor, with weights beside the graph and its signature', () => {
    const paths = ['MLmodel', 'conda.yaml', 'model.onnx', 'model.onnx.data', 'other/model.onnx.data'];
    const mlmodel = {
      run_id: 'r1',
      mlflow_version: '3.1.0',
      signature,
      flavors: { ...plain, onnx: { data: 'model.onnx' } },
    };
    expect(planMlflow(mlmodel, paths)).toEqual({
      kind: 'onnx',
      files: [
        { from: 'model.onnx', to: 'model.onnx' },
        { from: 'model.onnx.data', to: 'model.onnx.data' },
      ],
      metadata: { 'mlflow.run_id': 'r1', 'mlflow.version': '3.1.0' },
      names: { inputs: ['x'], outputs: [] },
    });
  });

  it('finds the graph in the folder that the flavor names', () => {
    const plan = planMlflow({ flavors: { onnx: { data: 'data' } } }, ['MLmodel', 'data/graph.onnx', 'data/w.bin']);
    expect(plan).toMatchObject({
      files: [
        { from: 'data/graph.onnx', to: 'model.onnx' },
        { from: 'data/w.bin', to: 'w.bin' },
      ],
    });
  });

  it.each([
    ['sklearn', { pickled_model: 'model.pkl', sklearn_version: '1.5.0' }, 'model.pkl', '1.5.0'],
    ['xgboost', { data: 'model.ubj', xgb_version: '2.1.0' }, 'model.ubj', '2.1.0'],
    ['lightgbm', { data: 'model.lgb', lgb_version: '4.5.0' }, 'model.lgb', '4.5.0'],
  ])('is taken by its %s flavor for the Python template', (engine, flavor, file, version) => {
    expect(planMlflow({ flavors: { ...plain, [engine]: flavor } }, ['MLmodel', file])).toEqual({
      kind: 'template',
      engine,
      file,
      metadata: { 'engine.version': version },
      names: { inputs: [], outputs: [] },
    });
  });

  it.each([
    ['only Python', { flavors: plain }, /its flavors are python_function; wanted onnx, sklearn, xgboost or lightgbm/],
    ['nothing', null, /its flavors are none/],
    [
      'a graph that is not there',
      { flavors: { onnx: { data: 'm.onnx' } } },
      /names m\.onnx, which the folder does not hold/,
    ],
    [
      'a file that is not there',
      { flavors: { xgboost: { data: 'm.ubj' } } },
      /names m\.ubj, which the folder does not hold/,
    ],
    ['a flavor without a file', { flavors: { sklearn: {} } }, /its sklearn flavor names no file/],
  ])('says what is wrong with %s', (_what, mlmodel, words) =>
    expect(() => planMlflow(mlmodel, ['MLmodel'])).toThrow(words),
  );
});
