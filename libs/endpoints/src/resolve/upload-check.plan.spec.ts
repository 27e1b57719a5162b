import type { Signature } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { configFileFaults, configFiles } from './upload-check.plan.ts';
import type { ConfigSight } from './version.source.ts';

const files = (...paths: string[]) => paths.map((path) => ({ path, sha256: 'a'.repeat(64), size: 1 }));
const fixed: Signature = {
  inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4] }],
  outputs: [{ name: 'y', datatype: 'FP32', shape: [1, 4] }],
};
const sight = (more: Partial<ConfigSight>): ConfigSight => ({
  platform: 'onnxruntime_onnx', maxBatchSize: 0, declaresInputs: false, declaresOutputs: false, hasVersionPolicy: false, ...more,
}); // biome-ignore format: one record
const faults = (paths: string[], more: Partial<ConfigSight>, graphs: Record<string, Signature> = {}, folder = '') =>
  configFileFaults(
    { path: `${folder}config.pbtxt`, folder },
    sight(more),
    files(...paths),
    new Map(Object.entries(graphs)),
  );

describe('which texts a version brings', () => {
  it.each<[string, string[], string[]]>([
    ['none', ['model.onnx'], []],
    ['one at the top', ['1/model.onnx', 'config.pbtxt'], ['config.pbtxt']],
    ['one beside plain files', ['model.onnx', 'config.pbtxt'], ['config.pbtxt']],
    ['other choices beside it', ['1/model.onnx', 'config.pbtxt', 'configs/a100.pbtxt', 'configs/notes.md'], ['config.pbtxt', 'configs/a100.pbtxt']],
    ['one of each folder', ['enc/config.pbtxt', 'enc/1/model.onnx', 'all/config.pbtxt'], ['all/config.pbtxt', 'enc/config.pbtxt']],
    ['not one of a folder in a model', ['1/model.py', 'config.pbtxt', 'extra/config.pbtxt'], ['config.pbtxt']],
  ])('%s', (_what, paths, wanted) => expect(configFiles(files(...paths)).map(({ path }) => path)).toEqual(wanted)); // biome-ignore format: one row a case
});

describe('what is wrong with a text beside its words', () => {
  const named = { namedFiles: ['labels.txt', 'warmup/x', 'env.tar.gz'] };
  it.each<[string, string[], string[]]>([
    ['nothing', ['1/model.onnx', 'config.pbtxt', 'labels.txt', 'warmup/x', 'env.tar.gz'], []],
    ['a file that is not there', ['1/model.onnx', 'labels.txt', 'env.tar.gz'], ['names warmup/x, which is not in the upload; add it, or take its name out']],
    ['a file in another place', ['1/model.onnx', '1/labels.txt', 'warmup/x', 'env.tar.gz'], ['names labels.txt, which is not in the upload; add it, or take its name out']],
  ])('%s', (_what, paths, wanted) => expect(faults(paths, named)).toEqual(wanted)); // biome-ignore format: one row a case

  it('model files by another name', () => {
    expect(faults(['1/net.onnx'], { defaultModelFilename: 'net.onnx' })).toEqual([]);
    expect(faults(['1/net.onnx/model.onnx'], { defaultModelFilename: 'net.onnx' })).toEqual([]);
    expect(faults(['1/model.onnx'], { defaultModelFilename: 'net.onnx' })[0]).toContain('names net.onnx');
    expect(faults(['1/a.plan'], { ccModelFilenames: { '8.6': 'a.plan', '8.9': 'b.plan' } })[0]).toContain(
      'names b.plan',
    );
  });

  it.each<[string, Parameters<typeof faults>, number]>([
    ['a batch over a fixed one', [['1/model.onnx'], { maxBatchSize: 8 }, { '1/model.onnx': fixed }], 2],
    ['no batch', [['1/model.onnx'], {}, { '1/model.onnx': fixed }], 0],
    ['another back-end', [['1/model.onnx'], { maxBatchSize: 8, platform: 'python' }, { '1/model.onnx': fixed }], 0],
    ['a graph of another name', [['1/net.onnx'], { maxBatchSize: 8, defaultModelFilename: 'net.onnx' }, { '1/net.onnx': fixed }], 2],
    ['a graph that nobody could read', [['1/model.onnx'], { maxBatchSize: 8 }, {}], 0],
    ['the graph of its own folder', [['enc/1/model.onnx', 'dec/1/model.onnx'], { maxBatchSize: 8 }, { 'enc/1/model.onnx': fixed }, 'dec/'], 0],
    ['a graph in a folder of that name', [['1/model.onnx/model.onnx'], { maxBatchSize: 8 }, { '1/model.onnx/model.onnx': fixed }], 2],
    ['a free length', [['1/model.onnx'], { declaresInputs: true, inputs: [{ name: 'x', type: 'FP32', dims: [1, -1] }] }, { '1/model.onnx': fixed }], 1],
  ])('against the graph: %s', (_what, given, count) => expect(faults(...given)).toHaveLength(count)); // biome-ignore format: one row a case
});
