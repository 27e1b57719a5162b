import { AppError } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { diffSpecs, effectOf } from './spec.diff.ts';
import { parseSpec } from './spec.plan.ts';

const minimal = { name: 'text/a', model: { project: 'p', name: 'm' } };
const refused = (input: unknown): AppError => {
  try {
    parseSpec(input);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('was not refused');
};

describe('what a spec may say', () => {
  it('fills in every default', () => {
    expect(parseSpec(minimal)).toMatchObject({
      kind: 'Endpoint',
      fleet: { pool: 'default', replicas: 1 },
      traffic: { mode: 'newest' },
      limits: { timeoutMs: 60_000, maxBodyBytes: 67_108_864 },
      access: { inference: 'key' },
      idempotent: true,
    });
  });

  it('parsing its own answer changes nothing', () => expect(parseSpec(parseSpec(minimal))).toEqual(parseSpec(minimal)));

  it.each([
    [{ builtin: 'text-embeding' }, 'invalid', 'there is no built-in "text-embeding"'],
    [{ builtin: 'text-embedding', options: { pooling: 'median' } }, 'invalid', 'pooling'],
    [{ builtin: 'text-embedding', options: { maxToken: 3 } }, 'invalid', 'maxToken'],
    [{ builtin: 'text-tokens', options: { maxTokens: 7, padding: { multipleOf: 4 } } }, 'invalid', 'multipleOf'],
  ])('refuses processing %j when the endpoint is added', (processing, code, words) => {
    const error = refused({ ...minimal, processing });
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(words)]);
  });

  it.each([
    [{ mode: 'progressive' }],
    [{ mode: 'progressive', policy: 'quick', sticky: { header: 'x-user-id' } }],
    [{ mode: 'progressive', policy: { ramp: 'clock', clock: [{ weightPercent: 5, forMs: 1_000 }] } }],
  ])('takes traffic %j', (traffic) => expect(parseSpec({ ...minimal, traffic }).traffic).toMatchObject(traffic));

  it('leaves processing out where nobody says any: then the version does', () =>
    expect(parseSpec(minimal).processing).toBeUndefined());

  it.each<[object, string]>([
    [{ processing: { builtin: 'passthrough', module: 'a@1' } }, 'give either builtin or module'],
    [{ processing: {} }, 'give either builtin or module'],
    [{ processing: { module: 'A b' } }, 'a module is given as name or name@number'],
    [{ processing: { module: 'a@0' } }, 'a module is given as name or name@number'],
    [{ processing: { module: 'a@3', isolation: 'thread' } }, 'isolation'],
    [{ engine: { platform: 'custom' }, processing: { builtin: 'passthrough' } }, 'give processing.module'],
    [{ engine: { platform: 'custom', maxBatchSize: 4 }, processing: { module: 'a@1' } }, 'custom has no model'],
  ])('refuses %j', (part, words) => {
    const error = refused({ ...minimal, ...part });
    expect([error.code, error.message]).toEqual(['invalid', expect.stringContaining(words)]);
  });

  it('names the model of an endpoint that has none', () => {
    const alone = { name: 'w', engine: { platform: 'custom' }, processing: { module: 'work/a@3' } };
    const named = { project: 'modules', name: 'work-a', none: true };
    expect(parseSpec(alone).model).toEqual(named);
    expect(parseSpec({ ...alone, model: { none: true } }).model).toEqual(named);
    expect(parseSpec(parseSpec(alone))).toEqual(parseSpec(alone));
    const other = { ...parseSpec(alone), processing: { module: 'work/b@1' } };
    expect(parseSpec(other).model).toEqual(named);
  });

  it.each<[object, string]>([
    [{ model: undefined, engine: { platform: 'custom' } }, 'model'],
    [{ model: { ...minimal.model, none: true }, processing: { module: 'a@1' } }, 'model.none: wants engine.platform custom'],
    [{ model: { ...minimal.model, none: true, version: 3 }, engine: { platform: 'custom' }, processing: { module: 'a@1' } }, 'model.version'],
  ])('refuses %j as an endpoint without a model', (part, words) => {
    expect(refused({ ...minimal, ...part })).toMatchObject({ code: 'invalid', message: expect.stringContaining(words) });
  }); // biome-ignore format: rows

  it('keeps slo as information', () =>
    expect(parseSpec({ ...minimal, slo: { latencyMs: 5 } }).slo).toEqual({ latencyMs: 5 }));

  it.each<[string, object, string]>([
    [
      'progressive traffic of an external Triton',
      { model: { source: 'gpu-box/resnet50' }, traffic: { mode: 'progressive' } },
      'traffic.mode',
    ],
    ['concurrency', { limits: { concurrency: 'auto' } }, 'limits.concurrency'],
    ['rate limits', { limits: { rateLimitPerKey: 5 } }, 'limits.rateLimitPerKey'],
  ])('%s is understood and not built yet', (_what, part, path) => {
    const error = refused({ ...minimal, ...part });
    expect(error.code).toBe('not_available_yet');
    expect(error.message).toContain(`endpoint text/a: ${path}: `);
    expect(error.details!['errors']).toEqual([{ path, message: expect.stringContaining('not available yet') }]);
  });

  it('names every part that is not built, not the first alone', () => {
    const error = refused({
      ...minimal,
      limits: { concurrency: 3, rateLimitPerKey: 5 },
    });
    expect((error.details!['errors'] as { path: string }[]).map(({ path }) => path)).toEqual([
      'limits.concurrency',
      'limits.rateLimitPerKey',
    ]);
  });

  it.each([
    ['Pipeline', 'invalid', '"perch pipeline add"'],
    ['Split', 'invalid', '"perch split add"'],
  ])('kind %s is no endpoint', (kind, code, words) => {
    expect(refused({ kind, name: 'x' })).toMatchObject({ code, message: expect.stringContaining(words) });
  });

  it.each<[string, unknown, string]>([
    ['no object', 'text', 'endpoint spec'],
    ['another kind', { ...minimal, kind: 'Widget' }, 'kind'],
    ['an unknown field', { ...minimal, colour: 1 }, 'colour'],
    ['an unknown field deep inside', { ...minimal, fleet: { pools: 'x' } }, 'fleet'],
    [
      'two sources of versions',
      { ...minimal, model: { ...minimal.model, version: 1, maxVersions: 2 } },
      'model.version',
    ],
    ['weights without the mode', { ...minimal, traffic: { weights: { '1': 1 } } }, 'traffic.mode'],
    ['weighted without weights', { ...minimal, traffic: { mode: 'weighted' } }, 'traffic.mode'],
    ['weights by names', { ...minimal, traffic: { mode: 'weighted', weights: { new: 1 } } }, 'traffic.weights'],
    ['weights of zero', { ...minimal, traffic: { mode: 'weighted', weights: { '1': 0 } } }, 'traffic.weights'],
    ['a policy without the mode', { ...minimal, traffic: { policy: 'default' } }, 'traffic.policy'],
    ['progressive weights', { ...minimal, traffic: { mode: 'progressive', weights: { '1': 1 } } }, 'traffic.mode'],
    ['no such policy', { ...minimal, traffic: { mode: 'progressive', policy: 'fast' } }, 'traffic.policy'],
    [
      'copies of requests that must not be sent twice',
      { ...minimal, idempotent: false, traffic: { mode: 'progressive', policy: { shadow: {} } } },
      'traffic.policy.shadow',
    ],
    ...Object.entries<object>({
      'decreasing weights': { weightsPercent: [5, 1] },
      'weights of zero percent': { weightsPercent: [0, 5] },
      'a dwell of zero': { dwellMs: 0 },
      'a margin of zero': { error: { margin: { absolute: 0, relative: 0 } } },
      'an alpha of one': { alpha: 1 },
      'an alpha of zero': { alpha: 0 },
      'no metric at all': { error: false, slow: false, contract: false },
    }).map(([what, policy]): [string, unknown, string] => [
      what,
      { ...minimal, traffic: { mode: 'progressive', policy } },
      'traffic.policy',
    ]),
    ['batching without a batch', { ...minimal, engine: { dynamicBatching: {} } }, 'engine.dynamicBatching'],
    [
      'a preferred size above the largest',
      { ...minimal, engine: { maxBatchSize: 4, dynamicBatching: { preferredSizes: [8] } } },
      'preferredSizes',
    ],
    [
      'a file name with folders',
      { ...minimal, engine: { defaultModelFilename: '../model.onnx' } },
      'engine.defaultModelFilename',
    ],
    [
      'a dimension of zero',
      { ...minimal, engine: { inputs: [{ name: 'x', type: 'FP32', dims: [0] }] } },
      'engine.inputs',
    ],
    ['no replicas', { ...minimal, fleet: { replicas: 0 } }, 'fleet.replicas'],
    ['module and builtin', { ...minimal, processing: { builtin: 'a', module: 'b' } }, 'processing'],
  ])('%s is wrong, and the field is named', (_what, input, words) => {
    const error = refused(input);
    expect(error.code).toBe('invalid');
    expect(error.message).toContain(words);
  });
});

describe('differences and what follows', () => {
  const a = parseSpec(minimal);
  it('names members by path and lists as a whole', () => {
    const b = parseSpec({ ...minimal, fleet: { replicas: 2 }, model: { ...minimal.model, select: { tags: ['x'] } } });
    expect(diffSpecs(a, b)).toEqual([
      { path: 'fleet.replicas', before: 1, after: 2 },
      { path: 'model.select', before: null, after: { tags: ['x'], tagMatch: 'all', published: true } },
    ]);
    expect(diffSpecs(a, a)).toEqual([]);
    expect(diffSpecs(null, a).length).toBeGreaterThan(5);
  });

  it.each<[string, object | null, object, number[], number[], string[]]>([
    ['a new one with a version', null, {}, [3], [], ['loads version 3 of p/m on 1 server of pool default']],
    ['a new one without', null, {}, [], [], ['no version of p/m matches: waits for one']],
    ['the same again', {}, {}, [3], [3], []],
    [
      'other settings',
      {},
      { engine: { maxBatchSize: 2 } },
      [3],
      [3],
      ['loads version 3 of p/m on 1 server of pool default', 'version 3 serves until that is ready'],
    ],
    [
      'another version',
      {},
      { model: { ...minimal.model, version: 2 } },
      [2],
      [3],
      [
        'loads version 2 of p/m on 1 server of pool default',
        'version 3 serves until that is ready',
        'then unloads version 3',
      ],
    ],
    [
      'another module',
      { processing: { module: 'a@1' } },
      { processing: { module: 'a@2', isolation: 'process' } },
      [3],
      [3],
      ['runs version 3 with module a@2 (isolation process); no model is loaded again'],
    ],
    [
      'no processing of its own any more',
      { processing: { builtin: 'passthrough' } },
      {},
      [3],
      [3],
      ['runs version 3 with the processing that the version carries; no model is loaded again'],
    ],
    [
      'a module alone',
      null,
      { engine: { platform: 'custom' }, processing: { module: 'a@2' } },
      [3],
      [],
      ['runs version 3 of p/m by its module alone, on no server'],
    ],
    ['more replicas', {}, { fleet: { replicas: 2 } }, [3], [3], ['moves replicas between servers']],
    ['a description', {}, { description: 'x' }, [3], [3], ['no effect on what is served']],
    [
      'a rule that nothing meets',
      {},
      { model: { ...minimal.model, select: { tags: ['x'] } } },
      [],
      [3],
      ['unloads version 3: nothing is served any more', 'no version of p/m matches: waits for one'],
    ],
  ])('%s', (_what, before, after, wanted, serving, effect) => {
    const old = before === null ? null : parseSpec({ ...minimal, ...before });
    expect(effectOf(old, parseSpec({ ...minimal, ...after }), wanted, serving)).toEqual(effect);
  });
});
