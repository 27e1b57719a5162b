import { describe, expect, it } from 'vitest';
import { planHuggingFace } from './huggingface.plan.ts';

describe('a Hugging Face folder', () => {
  it.each([
    [['model.onnx', 'tokenizer.json'], undefined, ['model.onnx', 'tokenizer.json'], []],
    [['onnx/model.onnx', 'tokenizer.json', 'config.json', 'pytorch_model.bin'], undefined, ['model.onnx', 'tokenizer.json', 'config.json'], ['pytorch_model.bin']],
    [['onnx/model.onnx', 'onnx/model.onnx_data', 'tokenizer.json'], undefined, ['model.onnx', 'model.onnx_data', 'tokenizer.json'], []],
    [['onnx/model.onnx', 'onnx/model_quantized.onnx', 'tokenizer.json'], 'onnx/model_quantized.onnx', ['model.onnx', 'tokenizer.json'], ['onnx/model.onnx']],
    [['model.onnx', 'preprocessor_config.json'], undefined, ['model.onnx', 'preprocessor_config.json'], []],
    [['minilm.onnx', 'tokenizer.json'], undefined, ['model.onnx', 'tokenizer.json'], []],
  ])('%j', (paths, onnx, taken, leftOut) => {
    const plan = planHuggingFace(paths, onnx);
    expect(plan.files.map(({ to }) => to)).toEqual(taken);
    expect(plan.leftOut).toEqual(leftOut);
  }); // biome-ignore format: rows
  it.each([
    [['model.onnx'], undefined, /tokenizer\.json/],
    [['tokenizer.json', 'pytorch_model.bin'], undefined, /export one/],
    [['a.onnx', 'b.onnx', 'tokenizer.json'], undefined, /choose one with --onnx/],
    [['model.onnx', 'tokenizer.json'], 'other.onnx', /holds no other\.onnx/],
  ])('%j says what is missing', (paths, onnx, words) => {
    expect(() => planHuggingFace(paths, onnx)).toThrow(words);
  });
});
