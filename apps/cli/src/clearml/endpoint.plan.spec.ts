import { endpointSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import {
  checkEngine,
  endpointNameOf,
  engineOf,
  moduleNameOf,
  planAdd,
  planAutoUpdate,
  planModule,
  tagRule,
} from './endpoint.plan.ts';
import { clearmlFramework, exactName, plainName, plainTag } from './name.ts';
import { guessBuiltin, preprocessRefusal } from './preprocess.plan.ts';

const said: string[] = [];
const notes = { note: (sentence: string) => void said.push(sentence) };

describe('names', () => {
  it.each([
    ['train pytorch model', 'train-pytorch-model'],
    ['train keras model - serving_model', 'train-keras-model-serving_model'],
    ['serving examples', 'serving-examples'],
    ['Modèle №1', 'Mode-le-No1'],
    ['  x  ', 'x'],
    ['already-fine_1.0', 'already-fine_1.0'],
    ['a'.repeat(80), 'a'.repeat(64)],
  ])('"%s" is called %s', (text, name) => expect(plainName(text, 'model')).toBe(name));
  it('says what it made of a name, and refuses one without a letter', () => {
    said.length = 0;
    plainName('serving examples', 'project', notes);
    plainName('fine', 'project', notes);
    expect(said).toEqual(['note: project "serving examples" is called serving-examples here']);
    expect(() => plainName('***', 'model')).toThrow('model "***"');
  });
  it.each([
    ['minilm', 'minilm'],
    ['^minilm$', 'minilm'],
    ['$minilm^', 'minilm'],
    ['train pytorch model', 'train pytorch model'],
  ])('the pattern %s is the name %s', (pattern, name) => expect(exactName(pattern)).toBe(name));
  it('refuses a real pattern', () => expect(() => exactName('mini.*lm|x')).toThrow(/is a pattern/));
  it('keeps tags as far as they can be kept', () => expect(plainTag('best model!')).toBe('best-model-'));
  it.each([
    ['pytorch', { framework: 'pytorch' }],
    ['keras', { framework: 'tensorflow' }],
    ['scikit-learn', { framework: 'custom', was: 'scikit-learn' }],
    ['XGBoost', { framework: 'custom', was: 'xgboost' }],
  ])('framework %s is %j', (text, framework) => expect(clearmlFramework(text)).toEqual(framework));
});

describe('endpoints', () => {
  it.each([
    ['test_model_pytorch', undefined, 'test_model_pytorch'],
    ['/test_model/', undefined, 'test_model'],
    ['test_model', '1', 'test_model/1'],
    ['a b/c', undefined, 'a-b/c'],
  ])('%s with version %s is %s', (endpoint, version, name) =>
    expect(endpointNameOf(endpoint, version, notes)).toBe(name),
  );
  it('wants a name', () => expect(() => endpointNameOf(undefined, undefined, notes)).toThrow(/--endpoint/));
  it('serves on Triton only, and says what to do with the rest', () => {
    for (const engine of ['triton', 'custom', 'custom_async', 'sklearn', 'xgboost', 'lightgbm'])
      expect(() => checkEngine(engine)).not.toThrow();
    expect(() => checkEngine('foo')).toThrow(/wants triton/);
  });
  it('leaves the work to a module with --engine custom, and names what is of no use then', () => {
    said.length = 0;
    const flags = { engine: 'custom_async', endpoint: 'test_model_pipeline', inputSize: ['1'], auxConfig: ['a=b'] };
    expect(planModule(flags, notes)).toEqual({
      kind: 'Endpoint',
      name: 'test_model_pipeline',
      engine: { platform: 'custom' },
    });
    expect(said).toEqual([
      'note: --input-size, --aux-config: not used with --engine custom_async; the module reads the body itself',
    ]);
  });
  it.each([
    ['test_model', 'test_model'],
    ['Text/MiniLM', 'text/minilm'],
    ['a/b/c/d/e', 'a/b/c/d'],
    ['_x/y', 'x/y'],
  ])('registers the module of endpoint %s as %s', (endpoint, name) =>
    expect(moduleNameOf({ endpoint }, notes)).toBe(name),
  );
  it.each([
    [undefined, { tags: [], tagMatch: 'any' }],
    [['a', 'b c'], { tags: ['a', 'b-c'], tagMatch: 'any' }],
    [['__$all', 'a'], { tags: ['a'], tagMatch: 'all' }],
  ])('tags %j are the rule %j', (tags, rule) => expect(tagRule(tags)).toEqual(rule));
  it('refuses tags that leave versions out', () => expect(() => tagRule(['-qa'])).toThrow(/not available yet/));
});

describe('whole lines', () => {
  const pytorch = {
    engine: 'triton',
    endpoint: 'test_model_pytorch',
    inputSize: ['1', '28', '28'],
    inputName: ['INPUT__0'],
    inputType: ['float32'],
    outputSize: ['-1', '10'],
    outputName: ['OUTPUT__0'],
    outputType: ['float32'],
  };
  it('takes dimensions as they stand and batches nothing', () => {
    const spec = planAdd(pytorch, { project: 'p', name: 'm', number: 3 }, engineOf(pytorch, undefined), notes);
    expect(spec).toEqual({
      kind: 'Endpoint',
      name: 'test_model_pytorch',
      model: { project: 'p', name: 'm', version: 3 },
      engine: {
        maxBatchSize: 0,
        inputs: [{ name: 'INPUT__0', type: 'FP32', dims: [1, 28, 28] }],
        outputs: [{ name: 'OUTPUT__0', type: 'FP32', dims: [-1, 10] }],
      },
    });
    expect(endpointSpec.safeParse(spec).success).toBe(true);
  });
  it('batches as the auxiliary configuration says, in pairs or in a file', () => {
    const pairs = { ...pytorch, auxConfig: ['max_batch_size=8', 'default_model_filename=\\"model.bin\\"'] };
    expect(engineOf(pairs, undefined)).toMatchObject({ maxBatchSize: 8, defaultModelFilename: 'model.bin' });
    expect(engineOf(pytorch, 'max_batch_size: 4\n').maxBatchSize).toBeUndefined();
    expect(engineOf(pytorch, 'instance_group [{ kind: KIND_CPU }]').maxBatchSize).toBe(0);
  });
  it('refuses tensors that are described twice', () => {
    expect(() => engineOf({ ...pytorch, auxConfig: ['input.0.format=FORMAT_NCHW'] }, undefined)).toThrow(
      /speaks of inputs too/,
    );
  });
  it('follows versions for auto-update', () => {
    const flags = { engine: 'triton', endpoint: 'auto', maxVersions: '2', tags: ['prod'], published: true };
    const spec = planAutoUpdate(flags, { project: 'p', name: 'm' }, engineOf(flags, undefined), notes);
    expect(spec).toEqual({
      kind: 'Endpoint',
      name: 'auto',
      model: { project: 'p', name: 'm', maxVersions: 2, select: { tags: ['prod'], tagMatch: 'any', published: true } },
      engine: { maxBatchSize: 0 },
    });
    expect(() => planAutoUpdate({ ...flags, maxVersions: '0' }, { project: 'p', name: 'm' }, {}, notes)).toThrow(
      /--max-versions/,
    );
  });
});

describe('--preprocess in Python', () => {
  it.each([
    ['import numpy', 'passthrough'],
    ['from transformers import AutoTokenizer', 'text-classification'],
    ['from PIL import Image', 'image-classification'],
    ['def mean_pooling(x): pass', 'text-embedding'],
  ])('%s fits %s', (source, builtin) => expect(guessBuiltin(source).builtin).toBe(builtin));
  it('names the file, the built-in and the module to write', () => {
    const text = preprocessRefusal('preprocess.py', 'import numpy', 'iris');
    expect(text).toContain('--preprocess preprocess.py');
    expect(text).toContain('perch endpoint update iris --processing passthrough');
    expect(text).toContain('defineProcessing({');
  });
});
