import type { ResolvedEngine, UsedModel, VersionState } from '@perch/contracts';
import type { ModelVariant } from '@perch/fleet';
import { describe, expect, it } from 'vitest';
import { planExport } from '../export.plan.ts';
import { heldName, withNeeds } from './needs.plan.ts';
import { besideOf, pickUsed, requireUses, type Used, usesDigest } from './uses.plan.ts';
import type { ServableVersion } from './version.source.ts';

const version = (number: number, state: VersionState = 'published'): ServableVersion => ({
  id: `v${number}`,
  number,
  state,
  tags: [],
  manifestDigest: `m${number}`,
  framework: 'python',
  signature: null,
});
const engine: ResolvedEngine = {
  platform: 'python',
  backend: 'python',
  maxBatchSize: 0,
  dynamicBatching: null,
  instances: [],
  inputs: [],
  outputs: [],
  parameters: {},
  defaultModelFilename: null,
  config: null,
};
const variant = (name: string, digest = `d-${name}`): ModelVariant => ({
  tritonModel: `${name}-v1-0123456789ab`,
  model: { engine, files: [{ path: '1/model.py', sha256: 'a'.repeat(64), size: 1 }], digest },
  needs: [],
  requires: { backend: 'python', gpu: false, tensorrt: null, onnx: null, memoryBytes: null },
});
const use = (model: string, as: UsedModel['as'] = 'literal', number?: number): UsedModel => ({
  model,
  as,
  ...(number === undefined ? {} : { version: number }),
});
const used = (name: string, how: UsedModel, from: ServableVersion | null = version(1), uses: Used[] = []): Used => ({
  name,
  use: how,
  version: from,
  fault: from ? null : `uses ${how.model} (as ${name}), of which no version is published`,
  uses,
});
const of = { name: 'caller', number: 4 };

describe('which version of a used model is taken', () => {
  const versions = [version(1), version(3), version(4, 'draft'), version(5, 'archived')];
  it.each([
    ['the newest published one', use('a/b'), 3, null],
    ['a fixed one', use('a/b', 'literal', 1), 1, null],
    ['a fixed draft', use('a/b', 'literal', 4), 4, null],
    ['an archived one', use('a/b', 'literal', 5), null, 'whose version 5 is archived'],
    ['one that is not there', use('a/b', 'literal', 9), null, 'which has no version 9'],
  ])('%s', (_name, wanted, number, fault) => {
    const picked = pickUsed('x', wanted, versions);
    expect(picked.version?.number ?? null).toBe(number);
    if (fault) expect(picked.fault).toBe(`uses a/b (as x), ${fault}`);
    else expect(picked.fault).toBeNull();
  });

  it('none is published, or the model is unknown', () => {
    expect(pickUsed('x', use('a/b'), [version(1, 'draft')]).fault).toContain('of which no version is published');
    expect(pickUsed('x', use('a/b'), []).fault).toContain('which does not exist');
  });

  it('the digest follows what is taken, at any depth', () => {
    const before = usesDigest([used('x', use('a/b'), version(1), [used('y', use('a/c'))])]);
    expect(usesDigest([used('x', use('a/b'), version(1), [used('y', use('a/c'))])])).toBe(before);
    expect(usesDigest([used('x', use('a/b'), version(1), [used('y', use('a/c'), version(2))])])).not.toBe(before);
    expect(usesDigest([used('x', use('a/b', 'parameter'), version(1), [used('y', use('a/c'))])])).not.toBe(before);
  });

  it('a fault in the depth is told with the way to it', () => {
    const deep = used('x', use('a/b'), version(1), [used('y', use('a/c'), null)]);
    expect(() => requireUses([deep])).toThrow('a/b uses a/c (as y), of which no version is published');
  });
});

describe('what a model gets beside it', () => {
  const scorer = variant('scorer');
  it('under a literal name: held under it, and the identity covers what is held', () => {
    const one = withNeeds(variant('caller'), of, besideOf([{ ...used('scorer', use('nlp/scorer')), variant: scorer }]));
    expect(one.needs).toMatchObject([{ as: 'scorer', tritonModel: scorer.tritonModel, of: 'nlp/scorer' }]);
    expect(one.model.needs).toEqual(['scorer']);
    expect(one.model.engine.parameters).toEqual({});
    expect(one.tritonModel).toMatch(/^caller-v4-[0-9a-f]{12}$/);
    const newer = { ...used('scorer', use('nlp/scorer')), variant: variant('scorer', 'other') };
    expect(withNeeds(variant('caller'), of, besideOf([newer])).tritonModel).not.toBe(one.tritonModel);
  });

  it('as a parameter: its Perch name is told', () => {
    const one = withNeeds(
      variant('caller'),
      of,
      besideOf([{ ...used('s', use('nlp/scorer', 'parameter')), variant: scorer }]),
    );
    expect(one.model.engine.parameters).toEqual({ PERCH_MODEL_s: scorer.tritonModel });
    expect(one.model.needs).toEqual([scorer.tritonModel]);
    expect(one.needs.map(heldName)).toEqual([scorer.tritonModel]);
  });

  it('what is needed in turn comes along; a model without needs stays what it was', () => {
    const inner = withNeeds(
      scorer,
      { name: 'scorer', number: 1 },
      besideOf([{ ...used('base', use('nlp/base')), variant: variant('base') }]),
    );
    const outer = withNeeds(
      variant('caller'),
      of,
      besideOf([{ ...used('scorer', use('nlp/scorer')), variant: inner }]),
    );
    expect(outer.needs.map(heldName)).toEqual(['base', 'scorer']);
    expect(outer.needs.find(({ as }) => as === 'scorer')!.model.needs).toEqual(['base']);
    expect(withNeeds(scorer, of, besideOf([]))).toBe(scorer);
  });

  it('one literal name for two models is refused, for the same model twice it is not', () => {
    const both = (second: ModelVariant) => [
      { ...used('s', use('nlp/scorer')), variant: scorer },
      {
        ...used('t', use('nlp/t')),
        variant: withNeeds(variant('t'), of, besideOf([{ ...used('s', use('nlp/other')), variant: second }])),
      },
    ];
    expect(() => withNeeds(variant('caller'), of, besideOf(both(variant('other'))))).toThrow(
      'the name s is wanted for two different models (nlp/scorer and nlp/other)',
    );
    expect(withNeeds(variant('caller'), of, besideOf(both(scorer))).needs).toHaveLength(2);
  });

  it('requirements of all of them count', () => {
    const gpu = { ...scorer, requires: { ...scorer.requires, gpu: true, memoryBytes: 5 } };
    const one = withNeeds(variant('caller'), of, besideOf([{ ...used('s', use('a/b')), variant: gpu }]));
    expect(one.requires).toMatchObject({ backend: 'python', gpu: true, memoryBytes: 5 });
  });
});

describe('planExport', () => {
  const texts = {
    render: (name: string, { parameters, config }: ResolvedEngine) => JSON.stringify({ name, parameters, config }),
    renameSteps: (text: string, names: ReadonlyMap<string, string>) =>
      [...names].reduce((all, [from, to]) => all.replaceAll(from, to), text),
  };
  const scorer = variant('scorer');

  it('gives back the text that was brought, the version folder and the names that code calls', () => {
    const one = withNeeds(variant('caller'), of, besideOf([{ ...used('scorer', use('nlp/scorer')), variant: scorer }]));
    const origins = new Map([
      [one.tritonModel, { folder: 'caller', version: 3, text: 'as it stood' }],
      [scorer.tritonModel, { folder: 'scorer', version: 1, text: null }],
    ]);
    expect(planExport(one, origins, texts)).toMatchObject([
      { name: 'caller', served: true, version: 3, config: 'as it stood', files: [{ path: '3/model.py' }] },
      { name: 'scorer', served: false, version: 1, config: null },
    ]);
  });

  it('a name handed over as a parameter is the one in the export; equal folders are told apart', () => {
    const same = { ...used('s', use('nlp/caller', 'parameter')), variant: scorer };
    const one = withNeeds(variant('caller'), of, besideOf([same]));
    const origins = new Map([
      [one.tritonModel, { folder: 'caller', version: 1, text: 'as it stood' }],
      [scorer.tritonModel, { folder: 'caller', version: 1, text: 'scorer text' }],
    ]);
    const [main, need] = planExport(one, origins, texts);
    expect(main!.config).toBe(
      JSON.stringify({ name: 'caller', parameters: { PERCH_MODEL_s: 'caller_2' }, config: null }),
    );
    expect(need).toMatchObject({ name: 'caller_2', config: expect.stringContaining('"name":"caller_2"') });
  });

  it('settings of the endpoint are rendered, and steps of an ensemble called as they are there', () => {
    const ensemble: ModelVariant = {
      ...variant('chain'),
      model: {
        ...variant('chain').model,
        engine: { ...engine, platform: 'ensemble', config: `step ${scorer.tritonModel}` },
      },
      needs: [{ tritonModel: scorer.tritonModel, as: null, model: scorer.model }],
    };
    const origins = new Map([
      [ensemble.tritonModel, { folder: 'chain', version: 1, text: undefined }],
      [scorer.tritonModel, { folder: 'scorer', version: 1, text: 'x' }],
    ]);
    expect(planExport(ensemble, origins, texts)[0]!.config).toContain('"config":"step scorer"');
  });
});
