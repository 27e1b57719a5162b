import { type EndpointSpecInput, endpointSpec, type SplitSpecInput } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { outOfScope, parseSplit, type SplitWorld, splitFaults } from './split.plan.ts';
import { namedVersions, withOwnWeights } from './split-member.plan.ts';
import { splitNameConflict, splitsInTheWay, usersText } from './split-name.plan.ts';

const endpoint = (name: string, more: Partial<EndpointSpecInput> = {}) =>
  endpointSpec.parse({ name, model: { project: 'p', name: 'm' }, ...more });
const split = (name: string, targets: string[], more: Partial<SplitSpecInput> = {}) =>
  parseSplit({ name, targets, weights: targets.map(() => 1), ...more });
const below = (name: string, targetPrefix: string, more = {}) => parseSplit({ name, targetPrefix, newestFirst: [1], ...more }); // biome-ignore format: one row reads better
const naming = (...specs: ReturnType<typeof split>[]) => specs.map((spec) => ({ name: spec.name, spec }));

describe('what a split may say by itself', () => {
  it.each<[object, string]>([
    [{ targets: ['a'], weights: [0] }, 'weights: at least one weight must be above zero'],
    [{ targets: ['a', 'b'], weights: [1] }, 'wants 2 weights, one for each target, not 1'],
    [{ targets: ['a'], weights: [Number.NaN] }, 'weights.0'],
    [{ targets: ['a'], weights: [Number.POSITIVE_INFINITY] }, 'weights.0'],
    [{ targets: ['a'], weights: [-1] }, 'weights.0'],
    [{ targets: ['a', 'a'], weights: [1, 1] }, 'names a target twice'],
    [{ targets: ['a'] }, 'one weight each'],
    [{ targets: [], weights: [] }, 'targets'],
    [{ targets: ['a b'], weights: [1] }, 'a target is an endpoint'],
    [{ targets: ['a'], weights: [1], targetPrefix: 'b', newestFirst: [1] }, 'either targets'],
    [{ targetPrefix: 'b' }, 'wants weights'],
    [{ targetPrefix: 'b//', newestFirst: [1] }, 'whole segments'],
    [{ targetPrefix: 'b', newestFirst: [0, 0] }, 'above zero'],
    [{}, 'either targets'],
    [{ targets: ['a'], weights: [1], colour: 1 }, 'colour'],
  ])('%j is refused', (spec, words) => expect(() => parseSplit({ name: 's', ...spec })).toThrow(words));
});

describe('what a split may refer to', () => {
  const world = (more: Partial<SplitWorld> = {}): SplitWorld => ({
    endpoints: new Map([
      ['a', endpoint('a')],
      ['a/7', endpoint('a/7', { model: { project: 'p', name: 'm', version: 3 } })],
      ['b', endpoint('b', { traffic: { mode: 'progressive' } })],
    ]),
    coming: new Set(['new']),
    splits: new Set(['other']),
    versions: new Map([['a', [{ number: 1, state: 'draft', tags: [] }, { number: 2, state: 'archived', tags: [] }]]]), // biome-ignore format: one row reads better
    ...more,
  });
  it.each<[ReturnType<typeof split>, RegExp | undefined]>([
    [split('s', ['a', 'a/1', 'a/7', 'a/7/3', 'b', 'new', 'new/4']), undefined],
    [below('s', 'nothing'), undefined],
    [split('s', ['a/2']), /version 2 of p\/m is archived/],
    [split('s', ['a/3']), /endpoint a has no version 3; it has 2, 1/],
    [split('s', ['a/7/4']), /endpoint a\/7 serves version 3 alone, not 4/],
    [split('s', ['b/1']), /endpoint b has no version 1; it has none/],
    [split('s', ['c/1']), /there is no endpoint c\/1 and none c; add it first/],
    [split('s', ['s']), /s is the split itself/],
    [split('s', ['other']), /other is a split/],
    [split('s', ['other/1']), /other is a split/],
    [split('a', ['a/1']), undefined],
    [split('a', ['b']), /a is an endpoint, so this split sets its weights/],
    [split('b', ['b/1']), /endpoint b is in mode progressive/],
    [below('a', 'a'), undefined],
    [below('a', 'b'), /wants a, not b/],
    [split('a', ['a/1'], { access: { inference: 'public' } }), /a is an endpoint that wants a key/],
  ])('%j', (spec, words) => {
    const faults = splitFaults(spec, world()).map(({ path, message }) => `${path}: ${message}`);
    if (words) expect(faults.join('; ')).toMatch(words);
    else expect(faults).toEqual([]);
  });

  it.each<[string[], ReturnType<typeof split>, string | undefined]>([
    [[], split('s', ['a']), undefined],
    [['s'], split('s', ['a']), 'a'],
    [['s', 'a'], split('s', ['a', 'a/1']), undefined],
    [['s', 'a'], split('s', ['a/7']), 'a/7'],
    [['a/*'], split('s', ['a']), 's'],
    [[], below('s', 'a'), undefined],
    [['s', 'a/*'], below('s', 'a'), 'a/*'],
    [['s', 'a', 'a/*'], below('s', 'a'), undefined],
    [['s', 'a/*'], below('s', 'a/deep'), undefined],
    [['s', 'a/deep'], below('s', 'a/deep'), 'a/deep/*'],
  ])('scopes %j', (scopes, spec, outside) => expect(outOfScope(scopes, spec, world())).toBe(outside));
});

describe('names', () => {
  const named = (name: string, onlyVersion: number | null = null) => ({ name, onlyVersion });
  it.each<[ReturnType<typeof split>, ReturnType<typeof named>[], ReturnType<typeof naming>, string | undefined]>([
    [split('s', ['a']), [named('t/1')], [], undefined],
    [split('s/7', ['a']), [named('s')], [], 'split s/7 would hide version 7 of endpoint s'],
    [split('s/7', ['a']), [named('s', 6)], [], undefined],
    [split('s/7', ['a']), [], naming(split('s', ['a'])), 'split s/7 would hide version 7 of split s'],
    [split('s', ['a']), [named('s/7', 1)], [], 'endpoint s/7 hides version 7 of split s'],
    [split('s', ['s/7', 's/8']), [named('s/7', 1), named('s/8', 2)], [], undefined],
    [below('s', 's/'), [named('s/7', 1)], [], undefined],
    [split('s', ['s/7']), [named('s'), named('s/x')], [], undefined],
  ])('%j', (spec, endpoints, splits, words) => {
    const conflict = splitNameConflict(spec, endpoints, splits);
    if (words) expect(conflict).toContain(words);
    else expect(conflict).toBeUndefined();
  });

  it('an endpoint does not take the name of a split, nor hide what it serves', () => {
    expect(splitsInTheWay(endpoint('s'), null, naming(split('s', ['a'])))).toContain('split s has this name');
    expect(splitsInTheWay(endpoint('s/7'), null, naming(split('s', ['a'])))).toContain('hide version 7 of split s');
    expect(splitsInTheWay(endpoint('s/7'), null, naming(split('s', ['s/7'])))).toBeUndefined();
    expect(splitsInTheWay(endpoint('s'), null, naming(split('s/7', ['a'])))).toContain('split s/7 hides version 7');
    expect(splitsInTheWay(endpoint('s'), endpoint('s'), naming(split('s', ['s/1'])))).toBeUndefined();
  });

  it('says who uses an endpoint', () => {
    expect(usersText('a', naming(split('s', ['a', 'b', 'a/7']), below('t', 'x')))).toBe('split s (a, a/7), split t');
  });
});

describe('what splits make of an endpoint', () => {
  it('versions that are loaded because they are named', () => {
    const splits = naming(split('s', ['a/7', 'a', 'b/3']), split('t', ['a/9', 'a/7']), below('u', 'a'));
    expect(namedVersions(endpoint('a'), splits)).toEqual([9, 7]);
    expect(namedVersions(endpoint('a', { model: { project: 'p', name: 'm', version: 7 } }), splits)).toEqual([]);
  });

  it('weights of a split of its own name, and nothing else', () => {
    const spec = endpoint('a', { traffic: { mode: 'newest', sticky: { header: 'x-user' } } });
    expect(withOwnWeights(spec, undefined)).toBe(spec);
    const { traffic, ...rest } = withOwnWeights(spec, split('a', ['a/7', 'a/6'], { weights: [10, 90] }));
    expect(traffic).toEqual({ mode: 'weighted', weights: { '7': 10, '6': 90 }, sticky: { header: 'x-user' } });
    expect({ ...rest, traffic: spec.traffic }).toEqual(spec);
    expect(withOwnWeights(spec, below('a', 'a', { sticky: { header: 'y' } })).traffic).toEqual({
      mode: 'weighted',
      newestFirst: [1],
      sticky: { header: 'y' },
    });
  });
});
