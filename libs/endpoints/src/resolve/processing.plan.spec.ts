import {
  type ProcessingModuleRecord,
  type ProcessingSpec,
  parseWith,
  processingSpec,
  type Role,
} from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { heldDeployment } from '../external-endpoint.plan.ts';
import { parseSpec } from '../spec.plan.ts';
import { resolveDeployment, sourceDigest } from './engine.plan.ts';
import {
  bindModule,
  boundBuiltin,
  decideIsolation,
  missingModule,
  processingIdentity,
  processingOf,
  processingSource,
  processingWords,
  requireProcess,
} from './processing.plan.ts';

const record = (more: Partial<ProcessingModuleRecord> = {}): ProcessingModuleRecord => ({
  name: 'ner/rules', number: 3, digest: 'd'.repeat(64), facts: { hooks: ['preprocess'], body: 'json' },
  files: [{ path: 'module.mjs', sha256: 'e'.repeat(64), size: 9 }], description: '', createdAt: '', createdBy: 'olga',
  ...more,
}); // biome-ignore format: one record
const key = (role: Role) => ({ name: 'kim', role });
const anywhere = { publisherIsolation: 'worker' as const };
const apart = { publisherIsolation: 'process' as const };

describe('where a module may run', () => {
  type Isolation = ProcessingSpec['isolation'];
  it.each<[Role, Isolation, typeof anywhere | typeof apart, Isolation | 'forbidden']>([
    ['publisher', undefined, anywhere, undefined],
    ['publisher', 'worker', anywhere, 'worker'],
    ['publisher', 'process', anywhere, 'process'],
    ['publisher', 'inline', anywhere, 'forbidden'],
    ['publisher', undefined, apart, 'process'],
    ['publisher', 'process', apart, 'process'],
    ['publisher', 'worker', apart, 'forbidden'],
    ['publisher', 'inline', apart, 'forbidden'],
    ['operator', undefined, apart, undefined],
    ['operator', 'worker', apart, 'worker'],
    ['operator', 'inline', anywhere, 'forbidden'],
    ['admin', 'inline', apart, 'inline'],
    ['admin', undefined, apart, undefined],
  ])('%s asks for %s with %j: %s', (role, isolation, policy, wanted) => {
    const spec = parseWith(processingSpec, { module: 'a@1', ...(isolation ? { isolation } : {}) }, 'spec');
    const decide = () => decideIsolation('endpoint e', spec, key(role), policy);
    if (wanted === 'forbidden')
      expect(decide).toThrow(
        expect.objectContaining({
          code: 'forbidden',
          message: expect.stringContaining(`kim is a${role === 'operator' ? 'n' : ''} ${role}`),
        }),
      );
    else expect(decide().isolation).toBe(wanted);
  });

  it('leaves built-ins inline, and says so', () => {
    const builtin = { builtin: 'passthrough' };
    expect(decideIsolation('e', { ...builtin, isolation: 'inline' }, key('publisher'), apart)).toMatchObject(builtin);
    expect(() => decideIsolation('e', { ...builtin, isolation: 'worker' }, key('admin'), apart)).toThrow(
      'e: processing.isolation: a built-in runs inline; worker is for modules',
    );
  });
});

describe('what a deployment is bound to', () => {
  it.each<[string, ProcessingSpec | undefined, ProcessingSpec | undefined, ProcessingSpec]>([
    ['the endpoint', { builtin: 'text-embedding' }, { module: 'a@1' }, { builtin: 'text-embedding' }],
    [
      'an endpoint that wrote the default of an earlier release',
      { builtin: 'passthrough' },
      { module: 'a@1' },
      { builtin: 'passthrough' },
    ],
    ['the version', undefined, { module: 'a@1' }, { module: 'a@1' }],
    ['nobody', undefined, undefined, { builtin: 'passthrough' }],
  ])('%s says it', (_who, own, carried, wanted) => {
    expect(processingOf({ processing: own }, { processing: carried })).toEqual(wanted);
  });

  it('tells apart what runs otherwise, and nothing else', () => {
    const bound = bindModule({ module: 'ner/rules@3' }, record());
    const identity = (more: Partial<ProcessingModuleRecord>, spec: Partial<ProcessingSpec> = {}) =>
      processingIdentity(bindModule({ module: 'ner/rules@3', ...spec }, record(more)));
    expect(bound).toMatchObject({ isolation: 'worker', options: {}, module: { name: 'ner/rules', number: 3 } });
    expect(identity({ number: 9, name: 'other' })).toEqual(processingIdentity(bound));
    expect(identity({}, { isolation: 'worker', options: {} })).toEqual(processingIdentity(bound));
    for (const other of [
      identity({ digest: 'f'.repeat(64) }),
      identity({}, { isolation: 'process' }),
      identity({}, { options: { k: 1 } }),
    ])
      expect(other).not.toEqual(processingIdentity(bound));
    expect(processingWords(bound)).toBe('module ner/rules@3, isolation worker');
  });

  it('finds a deployment again without asking for the module', () => {
    expect(processingSource({ module: 'a@1' })).toEqual(
      processingSource({ module: 'a@1', isolation: 'worker', options: {} }),
    );
    expect(processingSource({ module: 'a@1' })).not.toEqual(processingSource({ module: 'a@2' }));
    expect(processingSource({ builtin: 'passthrough' })).toEqual({ builtin: 'passthrough', options: {} });
  });

  it('gives deployments that exist the digests that they had before there were modules', () => {
    const version = {
      number: 1,
      manifestDigest: 'a'.repeat(64),
      signature: null,
      files: [{ path: 'model.onnx', sha256: 'b'.repeat(64), size: 1 }],
    };
    const spec = (more: object = {}) => parseSpec({ name: 'e', model: { project: 'p', name: 'm' }, ...more });
    const told = (more: object = {}) => [
      resolveDeployment(spec(more), version).digest,
      sourceDigest(spec(more), version),
    ];
    const [plain, written] = [told(), told({ processing: { builtin: 'passthrough' } })];
    expect(plain).toEqual(written);
    expect(plain).toEqual([
      'df2e96162390499623c0e7e3ef9deda89aac5ffc11b333c758b7e31ca554abab',
      'e0565934e6454ba9837ed106ecc338b10e9149cae8579d6da59eae1590e317b5',
    ]);
    expect(told({ processing: { builtin: 'text-embedding', options: { maxTokens: 9 } } })).toEqual([
      '34d228ba53c97aeece36ffc55273033f5bd311e3329a5fcb018cda7b5ebe22a8',
      '9229006e77096628b94ad9fce600158bb5157875648274e2b09fa54920f7965a',
    ]);
    const held = (more: object = {}) => {
      const given = parseSpec({ name: 'e', model: { source: 'gpu/resnet' }, ...more });
      const { digest, sourceDigest: source } = heldDeployment(given, 2, boundBuiltin(given.processing));
      return [digest, source];
    };
    const known = '161569b6c6f98187f7c52d6d8e54b1ec7dbce1ce79eee4e6253431694fb82f42';
    expect([held(), held({ processing: { builtin: 'passthrough' } })]).toEqual([
      [known, known],
      [known, known],
    ]);
  });
});

describe('what is not there', () => {
  it.each<[string, number[], string]>([
    ['a', [], 'there is no processing module a; "perch processing list" shows those that there are'],
    ['a@4', [3, 1], 'there is no processing module a@4; of a there are 3, 1'],
    [
      'a@90',
      [12, 11, 10, 9, 8, 7, 6, 5, 4],
      'there is no processing module a@90; of a there are 12, 11, 10, 9, 8, 7, 6, 5, …',
    ],
  ])('%s with %j', (reference, numbers, words) => expect(missingModule(reference, numbers)).toBe(words));

  it.each([
    [boundBuiltin(), 'built-in passthrough has none'],
    [bindModule({ module: 'ner/rules@3' }, record()), 'module ner/rules@3 has none'],
  ])('nobody who does the work of a model', (bound, words) => expect(() => requireProcess(bound)).toThrow(words));
});
