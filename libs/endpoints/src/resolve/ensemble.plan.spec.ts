import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type PartSight, partsOf, planEnsemble } from './ensemble.plan.ts';
import type { ConfigSight } from './version.source.ts';

const file = (path: string) => ({ path, sha256: 'a'.repeat(64), size: 1 });
const sight = (steps?: (string | [string, number])[]): ConfigSight => ({
  platform: steps ? 'ensemble' : 'python',
  maxBatchSize: 0,
  declaresInputs: true,
  declaresOutputs: true,
  hasVersionPolicy: false,
  ...(steps
    ? {
        steps: steps.map((step) =>
          typeof step === 'string' ? { model: step, version: -1 } : { model: step[0], version: step[1] },
        ),
      }
    : {}),
});
const part = (name: string, steps?: (string | [string, number])[], versions = [1]): PartSight => ({
  name,
  versions,
  sight: sight(steps),
});
const plan = (parts: PartSight[], wanted?: string, outside: string[] = []) =>
  planEnsemble(parts, wanted, new Set(outside));

describe('partsOf', () => {
  it.each([
    ['a graph alone', ['model.onnx'], null],
    ['a Triton folder', ['config.pbtxt', '1/model.onnx'], null],
    ['folders without any configuration', ['a/model.onnx', 'b/1/x.onnx'], null],
    ['one folder with a configuration', ['a/config.pbtxt', 'a/1/model.py'], ['a']],
    [
      'several, and files beside them',
      ['b/config.pbtxt', 'a/config.pbtxt', 'a/1/model.py', 'README.md', 'docs/x.md'],
      ['a', 'b'],
    ],
    ['one of them without a configuration', ['a/config.pbtxt', 'b/3/model.onnx'], ['a', 'b']],
  ])('%s', (_name, paths, names) => {
    expect(partsOf(paths.map(file))?.map(({ name }) => name) ?? null).toEqual(names);
  });

  it('paths are those below the folder', () => {
    const [only] = partsOf([file('a/config.pbtxt'), file('a/1/deep/model.py')])!;
    expect(only).toMatchObject({
      files: [{ path: 'config.pbtxt' }, { path: '1/deep/model.py' }],
      config: { path: 'config.pbtxt' },
    });
  });
});

describe('planEnsemble', () => {
  it.each<[string, Parameters<typeof plan>, { main: string; order: string[] }]>([
    ['the ensemble is served', [[part('a'), part('e', ['a', 'b']), part('b')]], { main: 'e', order: ['a', 'b', 'e'] }],
    [
      'the one that no other steps into',
      [[part('inner', ['a']), part('a'), part('outer', ['inner', 'a'])]],
      { main: 'outer', order: ['a', 'inner', 'outer'] },
    ],
    ['a lone folder', [[part('m')]], { main: 'm', order: ['m'] }],
    ['the folder that is named', [[part('a'), part('e', ['a'])], 'a'], { main: 'a', order: ['a'] }],
    [
      'steps into Perch models',
      [[part('e', ['a', 'other']), part('a')], undefined, ['other']],
      { main: 'e', order: ['a', 'e'] },
    ],
    ['a version that is there', [[part('e', [['a', 3]]), part('a', undefined, [3])]], { main: 'e', order: ['a', 'e'] }],
  ])('%s', (_name, args, expected) => {
    expect(plan(...args)).toEqual(expected);
  });

  it.each<[string, Parameters<typeof plan>, string]>([
    ['an unknown step', [[part('e', ['a', 'gone']), part('a')]], 'ensemble e steps into gone'],
    ['a version that is not there', [[part('e', [['a', 2]]), part('a', undefined, [3])]], 'version 2 of a'],
    ['two ensembles', [[part('e', ['a']), part('f', ['a']), part('a')]], 'say which one is served with engine.folder'],
    ['two models and no ensemble', [[part('a'), part('b')]], 'engine.folder'],
    ['a folder that is not there', [[part('a')], 'z'], 'engine.folder z'],
    ['a circle without a way in', [[part('a', ['b']), part('b', ['a'])]], 'in a circle: a -> b -> a'],
    [
      'a circle behind the way in',
      [[part('e', ['a']), part('a', ['b']), part('b', ['a'])]],
      'in a circle: e -> a -> b -> a',
    ],
    ['a folder that nothing leads to', [[part('e', ['a']), part('a'), part('helper')]], 'no step of e leads to helper'],
  ])('%s is refused', (_name, args, words) => {
    expect(() => plan(...args)).toThrow(words);
  });

  it('whatever steps into whatever below it: each once, after all that it steps into', () => {
    const graphs = fc
      .integer({ min: 1, max: 8 })
      .chain((size) =>
        fc.tuple(fc.constant(size), fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 20 })),
      );
    fc.assert(
      fc.property(graphs, ([size, edges]) => {
        // Part 0 steps into all others; every other edge leads to a higher number, so there is no circle.
        const below = (from: number) => [
          ...new Set(edges.filter(([a, b]) => Math.min(a, b) === from && a !== b).map(([a, b]) => Math.max(a, b))),
        ];
        const parts = Array.from({ length: size }, (_, at) => {
          const steps = at === 0 ? Array.from({ length: size - 1 }, (_all, n) => n + 1) : below(at);
          return part(`p${at}`, steps.length > 0 || at === 0 ? steps.map((n) => `p${n}`) : undefined);
        });
        const { main, order } = plan(parts);
        expect(main).toBe('p0');
        expect([...order].sort()).toEqual(parts.map(({ name }) => name).sort());
        for (const one of parts)
          for (const { model } of one.sight?.steps ?? [])
            expect(order.indexOf(model)).toBeLessThan(order.indexOf(one.name));
      }),
    );
  });
});
