import type { Route, RouteTarget } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileRoute, mayCall, pickServer, pickTarget, resolveServe } from './index.ts';

const target = (deployment: string, version: number): RouteTarget => ({
  deployment,
  version,
  tritonModel: `m-v${version}`,
  servers: ['s'],
  maxBatchSize: 0,
  inputs: [],
  outputs: [],
  processing: { builtin: 'passthrough', options: {} },
  files: [],
});
const by = (draw: number) => ({ draw, bucket: -1, lapsed: false });
const route = (targets: RouteTarget[], arms: [string, number][]): Route => ({
  arms: arms.map(([deployment, share]) => ({ deployment, share })),
  targets,
  access: 'public',
  timeoutMs: 1_000,
  maxBodyBytes: 1_000,
  idempotent: true,
});

/** A split of up to six targets, some of them unusable. */
const world = fc
  .array(fc.record({ weight: fc.nat(100), usable: fc.boolean() }), { minLength: 1, maxLength: 6 })
  .map((sides) => {
    const total = sides.reduce((sum, side) => sum + side.weight, 0);
    const targets = sides.map((_, index) => target(`d${index}`, index + 1));
    const arms = sides.map((side, index): [string, number] => [`d${index}`, total ? side.weight / total : 0]);
    const usable = new Set(sides.flatMap((side, index) => (side.usable ? [`d${index}`] : [])));
    return { compiled: compileRoute('e', route(targets, arms), (one) => usable.has(one.deployment)), arms, usable };
  });

describe('compileRoute and pickTarget', () => {
  it('only ever picks usable targets, and always one while there is one', () => {
    fc.assert(
      fc.property(
        world,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        ({ compiled, usable }, draw) => {
          const picked = pickTarget(compiled, by(draw));
          expect(picked === undefined).toBe(usable.size === 0);
          if (picked) expect(usable.has(picked.deployment)).toBe(true);
        },
      ),
    );
  });

  it('keeps every usable share as it is but for the heaviest, which takes what is missing', () => {
    fc.assert(
      fc.property(world, ({ compiled, arms, usable }) => {
        const shares = new Map(arms.filter(([id, share]) => usable.has(id) && share > 0));
        expect(compiled.arms.map((arm) => arm.target.deployment).sort()).toEqual([...shares.keys()].sort());
        for (const arm of compiled.arms.slice(1)) expect(arm.share).toBe(shares.get(arm.target.deployment));
        if (compiled.arms.length > 0) {
          expect(compiled.arms.reduce((sum, arm) => sum + arm.share, 0)).toBeCloseTo(1, 9);
          expect(compiled.arms.at(-1)!.until).toBe(1);
        }
      }),
    );
  });

  it('splits draws by share', () => {
    const compiled = compileRoute(
      'e',
      route(
        [target('a', 1), target('b', 2)],
        [
          ['a', 0.25],
          ['b', 0.75],
        ],
      ),
    );
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 10_000; i += 1) counts[pickTarget(compiled, by(i / 10_000))!.deployment as 'a' | 'b'] += 1;
    expect(counts).toEqual({ a: 2_500, b: 7_500 });
  });

  it('reaches a target without an arm by its version only', () => {
    const compiled = compileRoute('e', route([target('a', 1), target('b', 2)], [['b', 1]]));
    expect(pickTarget(compiled, by(0.999))!.version).toBe(2);
    expect(pickTarget(compiled, by(0), 1)!.deployment).toBe('a');
    expect(pickTarget(compiled, by(0), 3)).toBeUndefined();
  });

  it('prefers the deployment with a share among two of the same version', () => {
    const compiled = compileRoute('e', route([target('old', 1), target('new', 1)], [['new', 1]]));
    expect(pickTarget(compiled, by(0), 1)!.deployment).toBe('new');
  });
});

describe('resolveServe', () => {
  const endpoints = new Map(
    ['e', 'e/7', 'text/minilm', 'a/b/c'].map((name) => [name, compileRoute(name, route([], []))]),
  );
  it.each([
    ['e', 'e', undefined],
    ['e/3', 'e', 3],
    ['e/7', 'e/7', undefined],
    ['e/7/2', 'e/7', 2],
    ['text/minilm/12', 'text/minilm', 12],
    ['a/b/c', 'a/b/c', undefined],
    ['e/03', undefined, undefined],
    ['e/0', undefined, undefined],
    ['e/latest', undefined, undefined],
    ['e/', undefined, undefined],
    ['/e', undefined, undefined],
    ['', undefined, undefined],
    ['a/b', undefined, undefined],
  ])('%s is %s version %s', (path, name, version) => {
    const found = resolveServe({ endpoints }, path);
    expect(found?.route.name).toBe(name);
    expect(found?.version).toBe(version);
  });
});

describe('pickServer', () => {
  it('never picks the busiest of three or more when loads differ, and always one of them', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(1_000), { minLength: 2, maxLength: 9 }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
        (loads, draws) => {
          const picked = pickServer(
            loads,
            (load) => load,
            () => draws.next().value as number,
          );
          expect(loads).toContain(picked);
          expect(picked).not.toBe(Math.max(...loads));
        },
      ),
    );
  });
  it('takes the only one, and none of none', () => {
    expect(pickServer(['x'], () => 5, Math.random)).toBe('x');
    expect(pickServer([], () => 5, Math.random)).toBeUndefined();
  });
});

describe('mayCall', () => {
  it.each([
    [[], 'anything/at/all', true],
    [['text/minilm'], 'text/minilm', true],
    [['text/minilm'], 'text/minilm/2', false],
    [['text/*'], 'text/minilm', true],
    [['text/*'], 'text/a/b', true],
    [['text/*'], 'text', false],
    [['text/*'], 'textual/x', false],
    [['a', 'b/*'], 'b/c', true],
  ])('%j on %s: %s', (endpoints, endpoint, may) => {
    expect(mayCall({ hash: '', endpoints }, endpoint)).toBe(may);
  });
});
