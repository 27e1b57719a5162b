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
    [
      'golden requests beside the version directory',
      ['model.onnx', 'golden/one.json'],
      {},
      { paths: ['1/model.onnx', 'golden/one.json'] },
    ],
    [
      'golden requests of a Triton folder',
      ['1/model.onnx', 'golden/one.json'],
      {},
      { paths: ['1/model.onnx', 'golden/one.json'] },
    ],
    [
      'golden requests of a back-end that takes the whole folder',
      ['model.py', 'golden/one.json'],
      { platform: 'own' },
      { paths: ['1/model.py', 'golden/one.json'] },
    ],
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
    ['OpenVINO renames graph and weights together', ['net.xml', 'net.bin', 'net.mapping'], {}, { platform: 'openvino', paths: ['1/model.bin', '1/model.xml', '1/net.mapping'] }],
    ['an ahead-of-time package', ['x.pt2'], {}, { platform: 'torch_aoti', paths: ['1/model.pt2'] }],
    ['a frozen graph', ['x.graphdef'], {}, { platform: 'tensorflow_graphdef', paths: ['1/model.graphdef'] }],
    ['a DALI pipeline', ['p.dali'], {}, { platform: 'dali', paths: ['1/model.dali'] }],
    ['a vLLM model', ['model.json'], { platform: 'vllm' }, { platform: 'vllm', paths: ['1/model.json'] }],
    ['a model of another format is no weights', ['m.onnx', 'm.plan', 'm.pt', 'm.bin'], {}, { paths: ['1/m.bin', '1/model.onnx'] }],
    ['several plans keep their names', ['b.cc89.plan', 'a.cc86.plan'], {}, { paths: ['1/a.cc86.plan', '1/b.cc89.plan'] }],
    ['Python with weights of its own', ['model.py', 'net.pt', 'sub/x.py'], {}, { platform: 'python', paths: ['1/model.py', '1/net.pt', '1/sub/x.py'] }],
    ['code beside a model of the usual name is no Python model', ['model.py', 'model.onnx'], {}, { platform: 'onnxruntime_onnx' }],
    ['an environment lies where the parameter says', ['model.py', 'env.tar.gz'], { parameters: { EXECUTION_ENV_PATH: '$$TRITON_MODEL_DIRECTORY/env.tar.gz' } }, { paths: ['1/model.py', 'env.tar.gz'] }],
    ['an environment in the version directory', ['model.py', '1/x'], { parameters: { EXECUTION_ENV_PATH: '/opt/envs/x.tar.gz' }, platform: 'python' }, { paths: ['1/x', 'model.py'] }],
    ['labels and warm-up data lie beside the version directory', ['m.onnx', 'labels.txt', 'warmup/x.bin', 'initial_state/h'], {
      outputs: [{ name: 'y', type: 'FP32', dims: [1], labelFile: 'labels.txt' }],
      warmup: [{ name: 'w', inputs: { x: { type: 'FP32', dims: [1], data: { file: 'x.bin' } } } }],
      sequenceBatching: { states: [{ inputName: 'i', outputName: 'o', type: 'FP32', dims: [1], initial: [{ name: 'z', type: 'FP32', dims: [1], file: 'h' }] }] },
    }, { paths: ['1/model.onnx', 'initial_state/h', 'labels.txt', 'warmup/x.bin'] }],
    ['a configuration beside plain files is theirs', ['model.onnx', 'config.pbtxt'], {}, { platform: 'onnxruntime_onnx', paths: ['1/model.onnx'], config: 'config.pbtxt' }],
    ['an ensemble has no version directory of its own', ['config.pbtxt'], { platform: 'ensemble' }, { platform: 'ensemble', paths: [], config: 'config.pbtxt' }],
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
  ])('%s', (_what, paths, engine, expected) => expect(laid(paths, engine)).toMatchObject(expected)); // biome-ignore format: a table

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
    ['labels that are not there', ['m.onnx'], { outputs: [{ name: 'y', type: 'FP32', dims: [1], labelFile: 'l.txt' }] }, 'the settings name the file l.txt, which the version lacks'],
    ['an environment that is not there', ['model.py'], { parameters: { EXECUTION_ENV_PATH: '$$TRITON_MODEL_DIRECTORY/e.tar.gz' } }, 'name the file e.tar.gz'],
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
  }); // biome-ignore format: a table

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
