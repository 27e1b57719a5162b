import { describe, expect, it } from 'vitest';
import { guessFramework, mainOnnxPath } from './framework.decide.ts';

describe('guessFramework', () => {
  it.each([
    [['model.onnx', 'tokenizer.json'], 'onnx'],
    [['model.onnx', 'model.plan'], 'onnx'],
    [['1/model.plan'], 'tensorrt'],
    [['model.savedmodel/saved_model.pb'], 'tensorflow'],
    [['model.graphdef'], 'tensorflow'],
    [['model.xml', 'model.bin'], 'openvino'],
    [['weights.PT'], 'pytorch'],
    [['1/model.py', 'config.pbtxt'], 'python'],
    [['weights.bin', 'README.md'], null],
    [[], null],
  ])('%j → %s', (paths, framework) => expect(guessFramework(paths)).toBe(framework));
});

describe('mainOnnxPath', () => {
  it.each([
    [['model.onnx', 'onnx/model.onnx'], 'model.onnx'],
    [['onnx/model.onnx', 'onnx/model_quantized.onnx'], 'onnx/model.onnx'],
    [['minilm.onnx', 'tokenizer.json'], 'minilm.onnx'],
    [['a/1/model.onnx', 'b/1/model.onnx'], undefined],
    [['a.onnx', 'b.onnx'], undefined],
    [['model.plan'], undefined],
  ])('%j → %s', (paths, main) => expect(mainOnnxPath(paths)).toBe(main));
});
