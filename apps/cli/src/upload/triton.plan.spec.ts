import type { ConfigFacts } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { planTritonImport } from './triton.plan.ts';
import { calledModels, type RepositoryFolder, versionNumberOf } from './triton-folder.plan.ts';

const facts = (over: Partial<ConfigFacts> = {}): ConfigFacts => ({
  name: null,
  platform: null,
  backend: 'python',
  steps: null,
  versionPolicy: null,
  parameters: {},
  ...over,
});
const folder = (name: string, versions: number[], over: Partial<RepositoryFolder> = {}): RepositoryFolder => ({
  name,
  versions,
  files: ['config.pbtxt', ...versions.map((version) => `${version}/model.py`)],
  oddVersions: [],
  config: facts(),
  calls: [],
  ...over,
});
const ensemble = (name: string, steps: (string | [string, number])[], over: Partial<ConfigFacts> = {}) =>
  folder(name, [1], {
    files: ['config.pbtxt'],
    config: facts({
      platform: 'ensemble',
      backend: null,
      steps: steps.map((step) =>
        typeof step === 'string' ? { model: step, version: -1 } : { model: step[0], version: step[1] },
      ),
      ...over,
    }),
  });
const policy = (kind: 'latest' | 'all' | 'specific', over: { count?: number; versions?: number[] } = {}) =>
  facts({ versionPolicy: { kind, count: 0, versions: [], ...over } });
const naming = { project: 'p', names: {} };
const plan = (...folders: RepositoryFolder[]) => planTritonImport(folders, naming);

describe('every version folder becomes a version', () => {
  it('in order of numbers, each with its own files and those beside the folders', () => {
    const { models, faults } = plan(
      folder('m', [10, 2], { files: ['config.pbtxt', 'labels.txt', 'configs/a.pbtxt', '2/model.py', '10/model.py'] }),
    );
    expect(faults).toEqual([]);
    expect(models[0]!.versions.map(({ folder: number, files }) => [number, files.map(({ to }) => to)])).toEqual([
      [2, ['config.pbtxt', 'labels.txt', 'configs/a.pbtxt', '2/model.py']],
      [10, ['config.pbtxt', 'labels.txt', 'configs/a.pbtxt', '10/model.py']],
    ]);
  });

  it.each<[string, ConfigFacts, number, number[], string | undefined]>([
    ['none is said', facts(), 1, [1, 2, 3], undefined],
    ['latest 1', policy('latest', { count: 1 }), 1, [1, 2, 3], undefined],
    ['latest 2', policy('latest', { count: 2 }), 2, [1, 2, 3], 'version_policy latest 2 becomes maxVersions 2'],
    ['all', policy('all'), 3, [1, 2, 3], 'version_policy all becomes maxVersions 3'],
    ['specific', policy('specific', { versions: [1, 3] }), 2, [1, 3], '2 stay drafts'],
  ])('version_policy: %s', (_name, config, maxVersions, served, note) => {
    const { models, notes, faults } = plan(folder('m', [1, 2, 3], { config }));
    expect(faults).toEqual([]);
    expect(models[0]!.maxVersions).toBe(maxVersions);
    expect(models[0]!.versions.filter((version) => version.served).map((version) => version.folder)).toEqual(served);
    if (note) expect(notes.join()).toContain(note);
    else expect(notes).toEqual([]);
  });
});

describe('an ensemble is one model with its parts', () => {
  it('of each part the newest version, or the one that is named', () => {
    const { models, notes } = plan(ensemble('e', ['a', ['b', 1]]), folder('a', [1, 2]), folder('b', [1, 2]));
    expect(models.map(({ name }) => name)).toEqual(['e']);
    expect(models[0]!.versions[0]!.files.map(({ to }) => to)).toEqual([
      'e/config.pbtxt',
      'a/config.pbtxt',
      'a/2/model.py',
      'b/config.pbtxt',
      'b/1/model.py',
    ]);
    expect(notes).toHaveLength(2);
  });

  it('a part of two ensembles goes with each of them', () => {
    const { models } = plan(ensemble('e', ['a']), ensemble('f', ['a']), folder('a', [1]));
    expect(models.map(({ name, versions }) => [name, versions[0]!.files.length])).toEqual([
      ['e', 3],
      ['f', 3],
    ]);
  });

  it('what code calls is a model of its own, imported before, and used', () => {
    const { models, notes } = plan(folder('caller', [1], { calls: ['scorer', 'unknown'] }), folder('scorer', [1]));
    expect(models.map(({ name }) => name)).toEqual(['scorer', 'caller']);
    expect(models[1]!.uses).toEqual({ scorer: { model: 'p/scorer', as: 'literal' } });
    expect(notes.join()).toContain('its code calls scorer');
    const part = plan(ensemble('e', ['a', 'b']), folder('a', [1], { calls: ['b'] }), folder('b', [1]));
    expect(part.models.map(({ name }) => name)).toEqual(['b', 'e']);
    expect(part.models[1]!.uses).toEqual({ b: { model: 'p/b', as: 'literal' } });
  });
});

describe('names', () => {
  it('are those of the folders, or given ones', () => {
    const { models } = planTritonImport([folder('m', [1]), folder('n', [1], { calls: ['m'] })], {
      project: 'p',
      names: { m: 'other' },
    });
    expect(models.map(({ name }) => name)).toEqual(['other', 'n']);
    expect(models[1]!.uses).toEqual({ m: { model: 'p/other', as: 'literal' } });
  });
  it('one that no model may have wants another', () => {
    expect(plan(folder('_m', [1])).faults.join()).toContain('--name _m=');
  });
});

describe('what cannot be imported is named', () => {
  it.each<[string, RepositoryFolder[], string]>([
    ['no version folder', [folder('m', [])], 'm has no version folder'],
    ['another name', [folder('m', [1], { config: facts({ name: 'n' }) })], 'm/config.pbtxt has the name "n"'],
    ['a missing step', [ensemble('e', ['gone'])], 'ensemble e steps into gone'],
    ['a circle', [ensemble('e', ['f']), ensemble('f', ['e'])], 'in a circle'],
    [
      'a circle behind',
      [ensemble('e', ['f']), ensemble('f', ['g']), ensemble('g', ['f'])],
      'in a circle: e -> f -> g -> f',
    ],
    ['a version nobody has', [ensemble('e', [['a', 7]]), folder('a', [1])], 'version 7 of a'],
    [
      'several versions of one',
      [
        ensemble('e', [
          ['a', 1],
          ['a', 2],
        ]),
        folder('a', [1, 2]),
      ],
      'several versions of a',
    ],
    [
      'a policy that names nothing',
      [folder('m', [1], { config: policy('specific', { versions: [9] }) })],
      'specific names 9',
    ],
    [
      'an archive that is not there',
      [
        folder('m', [1], {
          config: facts({ parameters: { EXECUTION_ENV_PATH: '$$TRITON_MODEL_DIRECTORY/e.tar.gz' } }),
        }),
      ],
      'names e.tar.gz',
    ],
    [
      'more versions than can be served',
      [
        folder(
          'm',
          Array.from({ length: 65 }, (_, n) => n + 1),
          { config: policy('all') },
        ),
      ],
      'at most 64',
    ],
  ])('%s', (_name, folders, words) => {
    expect(plan(...folders).faults.join('; ')).toContain(words);
  });

  it('an archive elsewhere, and folders that are no versions, are said', () => {
    const { faults, notes } = plan(
      folder('m', [1], {
        oddVersions: ['01'],
        config: facts({ parameters: { EXECUTION_ENV_PATH: '/opt/env.tar.gz' } }),
      }),
    );
    expect(faults).toEqual([]);
    expect(notes.join()).toMatch(/outside of the model folder.*m\/01: no version folder/);
  });
});

it.each([
  ['InferenceRequest(model_name="scorer", inputs=[x])', ['scorer']],
  ["model_name = 'a' and model_name='b' and model_name='a'", ['a', 'b']],
  ['InferenceRequest(model_name=self.name)', []],
])('calls in %s', (code, names) => {
  expect(calledModels(code)).toEqual(names);
});

it.each([
  ['1', 1],
  ['10', 10],
  ['01', undefined],
  ['0', undefined],
  ['2.tmp', undefined],
  ['9223372036854775807', undefined],
])('version folder %s', (name, number) => {
  expect(versionNumberOf(name)).toBe(number);
});
