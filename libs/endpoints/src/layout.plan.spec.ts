import type { EngineSpec, ManifestFile } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { LayoutFault, planLayout, processingFiles } from './layout.plan.ts';

const file = (path: string, size = 1): ManifestFile => ({ path, size, sha256: 'a'.repeat(64) });
const laid = (paths: string[], engine: EngineSpec = {}) => {
  const { platform, files, defaultModelFilename, config } = planLayout(
    paths.map((path) => file(path)),
    engine,
  );
  return { platform, paths: files.map(({ path }) => path), name: defaultModelFilename, config: config?.path ?? null };
};

describe('where the files of a version go', () => {
  it.each<[string, string[], EngineSpec, Partial<ReturnType<typeof laid>>]>([
    ['one ONNX file', ['model.onnx'], {}, { platform: 'onnxruntime_onnx', paths: ['1/model.onnx'] }],
    ['an ONNX file of another name', ['minilm.onnx'], {}, { paths: ['1/model.onnx'] }],
    ['a Hugging Face folder', ['config.json', 'onnx/model.onnx', 'tokenizer.json'], {}, { paths: ['1/model.onnx'] }],
    [
      'several ONNX files, one of the usual name',
      ['onnx/model.onnx', 'onnx/model_int8.onnx'],
      {},
      { paths: ['1/model.onnx'] },
    ],
    ['the shallowest of two usual names', ['model.onnx', 'old/model.onnx'], {}, { paths: ['1/model.onnx'] }],
    [
      'external data beside it',
      ['m.onnx', 'm.onnx.data', 'w/x.bin'],
      {},
      { paths: ['1/m.onnx.data', '1/model.onnx', '1/w/x.bin'] },
    ],
    [
      'external data of a folder, not of its neighbour',
      ['onnx/model.onnx', 'onnx/model.onnx_data', 'pytorch_model.bin'],
      {},
      { paths: ['1/model.onnx', '1/model.onnx_data'] },
    ],
    [
      'a default name that a file has',
      ['a.onnx', 'b.onnx'],
      { defaultModelFilename: 'b.onnx' },
      { paths: ['1/b.onnx'], name: 'b.onnx' },
    ],
    [
      'a default name for a single odd file',
      ['weights'],
      { platform: 'onnxruntime_onnx', defaultModelFilename: 'model.bin' },
      { paths: ['1/model.bin'], name: 'model.bin' },
    ],
    ['a TensorRT plan', ['x.engine'], {}, { platform: 'tensorrt_plan', paths: ['1/model.plan'] }],
    ['TorchScript', ['x.pt'], {}, { platform: 'pytorch_libtorch', paths: ['1/model.pt'] }],
    [
      'a saved model',
      ['export/saved_model.pb', 'export/variables/v.data', 'notes.txt'],
      {},
      {
        platform: 'tensorflow_savedmodel',
        paths: ['1/model.savedmodel/saved_model.pb', '1/model.savedmodel/variables/v.data'],
      },
    ],
    [
      'Python takes all files',
      ['model.py', 'tokenizer.json'],
      {},
      { platform: 'python', paths: ['1/model.py', '1/tokenizer.json'] },
    ],
    ['a back-end of its own takes all files', ['x.txt'], { platform: 'fil' }, { platform: 'fil', paths: ['1/x.txt'] }],
    [
      'a Triton folder is taken as it is',
      ['1/model.onnx', 'config.pbtxt', 'labels.txt'],
      {},
      { platform: '', paths: ['1/model.onnx', 'labels.txt'], config: 'config.pbtxt' },
    ],
    [
      'a Triton folder with another number',
      ['3/model.onnx'],
      {},
      { platform: 'onnxruntime_onnx', paths: ['1/model.onnx'] },
    ],
  ])('%s', (_what, paths, engine, expected) => expect(laid(paths, engine)).toMatchObject(expected));

  it.each<[string, string[], EngineSpec, string]>([
    ['nothing known', ['a.md', 'b.md'], {}, 'do not tell the platform'],
    [
      'two ONNX files of equal right',
      ['a.onnx', 'b.onnx'],
      {},
      '2 files fit platform onnxruntime_onnx (a.onnx, b.onnx)',
    ],
    ['two usual names equally deep', ['a/model.onnx', 'b/model.onnx'], {}, 'name one with engine.defaultModelFilename'],
    [
      'no file for the platform that was named',
      ['a.md', 'b.md'],
      { platform: 'tensorrt_plan' },
      'no file for platform tensorrt_plan',
    ],
    ['two version directories', ['1/model.onnx', '2/model.onnx'], {}, 'version directories 1, 2'],
    [
      'a file where the model is to go',
      ['main.onnx', 'weights.bin'],
      { defaultModelFilename: 'weights.bin', platform: 'tensorrt_plan' },
      '',
    ],
  ])('%s is refused with words', (_what, paths, engine, words) => {
    if (words === '') return expect(laid(paths, engine).paths).toContain('1/weights.bin');
    expect(() => laid(paths, engine)).toThrow(LayoutFault);
    expect(() => laid(paths, engine)).toThrow(words);
  });

  it('the order of the manifest does not matter', () => {
    const paths = ['onnx/model.onnx', 'onnx/model.onnx_data', 'tokenizer.json'];
    expect(laid([...paths].reverse())).toEqual(laid(paths));
  });

  it('processing gets small files that are no weights', () => {
    const files = [
      file('tokenizer.json'),
      file('vocab.txt'),
      file('model.onnx'),
      file('huge.json', 65 * 1024 ** 2),
      file('a/labels.csv'),
    ];
    expect(processingFiles(files).map(({ path }) => path)).toEqual(['a/labels.csv', 'tokenizer.json', 'vocab.txt']);
  });
});
