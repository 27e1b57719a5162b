import { bucketCount, bucketsOf, type Route, type RouteRollout, type RouteTarget } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../test/support/random.ts';
import { bucketOf, type CompiledRoute, compileRoute, hashText, pickTarget, seedOf } from './index.ts';

const target = (deployment: string, version: number, fields: Partial<RouteTarget> = {}): RouteTarget => ({
  deployment,
  version,
  tritonModel: `m-v${version}`,
  servers: ['s'],
  maxBatchSize: 0,
  inputs: [],
  outputs: [],
  processing: { builtin: 'passthrough', options: {} },
  files: [],
  ...fields,
});

const rollout: RouteRollout = {
  id: 'r',
  epoch: 1,
  stable: 'old',
  candidate: 'new',
  salt: 'salt',
  leaseMs: 15_000,
  slowMs: null,
  slowGraceMs: 0,
  metrics: [],
  fallback: null,
  shadow: null,
  feedbackKey: null,
};

const routeOf = (targets: RouteTarget[], shares: Record<string, number>, fields: Partial<Route> = {}): Route => ({
  arms: Object.entries(shares).map(([deployment, share]) => ({ deployment, share })),
  targets,
  access: 'public',
  timeoutMs: 1_000,
  maxBodyBytes: 1_000,
  idempotent: true,
  ...fields,
});

const sides = [target('old', 7), target('new', 8)];
const sticky = { header: 'X-User-Id', salt: 'ordinary' };

/** A rollout at this share of the candidate; `without`: deployments that this router cannot serve. */
const trial = (share: number, { keyed = false, without = [] as string[] } = {}): CompiledRoute =>
  compileRoute(
    'e',
    routeOf(sides, { old: 1 - share, new: share }, { rollout, ...(keyed ? { sticky } : {}) }),
    ({ deployment }) => !without.includes(deployment),
  );

/** Where one request goes: by the draw, or by a bucket. */
const goes = (route: CompiledRoute, at: { draw?: number; bucket?: number; lapsed?: boolean }, pin?: number) =>
  pickTarget(route, { draw: 0.5, bucket: -1, lapsed: false, ...at }, pin)?.deployment;

/** Of two outcomes with these shares; 10.83 is passed once in 1,000 runs. */
const chiSquare = (hits: number, total: number, share: number): number =>
  (hits - total * share) ** 2 / (total * share) + (hits - total * share) ** 2 / (total * (1 - share));

const share = fc.double({ min: 0.0001, max: 0.9999, noNaN: true });
const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const bucket = fc.integer({ min: 0, max: bucketCount - 1 });

/** The published algorithm, byte by byte, as an independent reading of it. */
function murmur3(bytes: Buffer, seed: number): number {
  const multiply = (a: number, b: number) => Number((BigInt(a >>> 0) * BigInt(b)) & 0xffffffffn);
  const turn = (value: number, by: number) => ((value << by) | (value >>> (32 - by))) >>> 0;
  let hash = seed >>> 0;
  const blocks = bytes.length >> 2;
  for (let at = 0; at < blocks; at += 1) {
    hash = (hash ^ multiply(turn(multiply(bytes.readUInt32LE(at * 4), 0xcc9e2d51), 15), 0x1b873593)) >>> 0;
    hash = (multiply(turn(hash, 13), 5) + 0xe6546b64) >>> 0;
  }
  let tail = 0;
  for (let at = bytes.length - 1; at >= blocks * 4; at -= 1) tail = (tail << 8) | bytes[at]!;
  if (bytes.length & 3) hash = (hash ^ multiply(turn(multiply(tail, 0xcc9e2d51), 15), 0x1b873593)) >>> 0;
  hash = (hash ^ bytes.length) >>> 0;
  hash = multiply(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = multiply(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

describe('the bucket of a key', () => {
  it('comes from MurmurHash3 over the bytes of its UTF-16 text', () => {
    expect(murmur3(Buffer.from('Hello, world!'), 1234)).toBe(0xfaf6cdb3); // as published
    fc.assert(
      fc.property(
        fc.string({ maxLength: 60, unit: 'binary' }),
        fc.integer({ min: 0, max: 2 ** 32 - 1 }),
        (text, seed) => {
          expect(hashText(text, seed)).toBe(murmur3(Buffer.from(text, 'utf16le'), seed));
        },
      ),
    );
  });
  it.each<[string, (at: number) => string]>([
    ['numbers', (at) => String(at)],
    ['addresses', (at) => `user${at}@example.com`],
    ['ids with a common end', (at) => `${at.toString(16).padStart(8, '0')}-aaaa-4bbb-8ccc-0123456789ab`],
  ])('spreads %s evenly, and under another salt anew', (_, keyOf) => {
    const [one, other] = [seedOf('salt-1'), seedOf('salt-2')];
    const single = new Array<number>(100).fill(0);
    const pairs = new Array<number>(100).fill(0);
    for (let at = 0; at < 100_000; at += 1) {
      const here = bucketOf(one, keyOf(at));
      single[Math.floor(here / 100)]! += 1;
      pairs[Math.floor(here / 1_000) * 10 + Math.floor(bucketOf(other, keyOf(at)) / 1_000)]! += 1;
    }
    // 99 degrees of freedom: passed once in 10,000 runs
    const statistic = (cells: number[]) => cells.reduce((sum, seen) => sum + (seen - 1_000) ** 2 / 1_000, 0);
    expect(statistic(single)).toBeLessThan(160);
    expect(statistic(pairs)).toBeLessThan(160);
  });
});

describe('where a request goes while a candidate is on trial', () => {
  it.each<[string, CompiledRoute, Parameters<typeof goes>[1], number | undefined, string | undefined]>([
    ['a low draw', trial(0.05), { draw: 0.0499 }, undefined, 'new'],
    ['a draw at the end of its share', trial(0.05), { draw: 0.05 }, undefined, 'old'],
    ['a low bucket', trial(0.05, { keyed: true }), { bucket: 499, draw: 0.9 }, undefined, 'new'],
    ['the first bucket beyond', trial(0.05, { keyed: true }), { bucket: 500, draw: 0 }, undefined, 'old'],
    ['no key, by its draw', trial(0.05, { keyed: true }), { draw: 0.0499 }, undefined, 'new'],
    ['a pin to either version', trial(0.05), { draw: 0.9 }, 8, 'new'],
    ['a pin against its draw', trial(0.05), { draw: 0 }, 7, 'old'],
    ['a pin to what is not served', trial(0.05), {}, 9, undefined],
    ['a lapsed lease', trial(0.99), { draw: 0, lapsed: true }, undefined, 'old'],
    ['a lapsed lease and a low bucket', trial(0.99, { keyed: true }), { bucket: 0, lapsed: true }, undefined, 'old'],
    ['a lapsed lease and a pin', trial(0.5), { lapsed: true }, 8, 'new'],
    ['a candidate that cannot be served', trial(0.99, { without: ['new'] }), { draw: 0 }, undefined, 'old'],
    ['a stable that cannot be served', trial(0.01, { without: ['old'] }), { draw: 0.9 }, undefined, 'new'],
    ['only the candidate and a lapsed lease', trial(0.01, { without: ['old'] }), { lapsed: true }, undefined, 'new'],
    ['none that can be served', trial(0.5, { without: ['old', 'new'] }), {}, undefined, undefined],
    ['a candidate without a share', trial(0), { draw: 0 }, undefined, 'old'],
  ])('%s', (_, route, at, pin, deployment) => expect(goes(route, at, pin)).toBe(deployment));

  it('judges only where it can serve both sides', () => {
    expect(trial(0.05).rollout).toMatchObject({ spec: rollout, stable: sides[0], candidate: sides[1] });
    for (const without of ['old', 'new']) expect(trial(0.05, { without: [without] }).rollout).toBeUndefined();
  });
  it('pins a version that both sides have to stable', () => {
    const settings = [target('old', 7), target('new', 7)];
    const route = compileRoute('e', routeOf(settings, { old: 0.01, new: 0.99 }, { rollout }));
    expect(goes(route, {}, 7)).toBe('old');
  });
  it('gives the share of a third that cannot be served to stable, be it the lighter one', () => {
    const route = compileRoute(
      'e',
      routeOf([...sides, target('third', 6)], { new: 0.6, old: 0.1, third: 0.3 }, { rollout }),
      ({ deployment }) => deployment !== 'third',
    );
    expect(route.arms.map((arm) => [arm.target.deployment, arm.share])).toEqual([
      ['new', 0.6],
      ['old', 0.4],
    ]);
  });

  it('never takes a key back while the weight rises, nor by draw', () => {
    fc.assert(
      fc.property(fc.array(share, { minLength: 2, maxLength: 6 }), bucket, draw, (shares, key, by) => {
        const ramp = [...shares].sort((a, b) => a - b);
        const path = ramp.map((one) => [
          goes(trial(one, { keyed: true }), { bucket: key }),
          goes(trial(one), { draw: by }),
        ]);
        for (const way of [0, 1]) {
          const names = path.map((step) => step[way]);
          expect(names).toEqual([...names].sort((a, b) => (a === b ? 0 : a === 'old' ? -1 : 1)));
        }
      }),
    );
  });
  it('gives the candidate exactly the buckets that its share says, on any router', () => {
    fc.assert(
      fc.property(share, (one) => {
        const [candidate, stable] = trial(one, { keyed: true }).arms;
        expect(candidate).toMatchObject({ target: sides[1], untilBucket: bucketsOf(one) });
        expect(stable!.untilBucket).toBe(bucketCount);
      }),
    );
    expect([0, 0.00001, 0.01, 0.29, 0.07 / 100, 0.99999, 1].map(bucketsOf)).toEqual([0, 1, 100, 2900, 7, 9999, 10_000]);
  });
  it('same request, same table, same draw: same arm', () => {
    fc.assert(
      fc.property(share, draw, fc.string(), (one, by, key) => {
        const table = () => trial(one, { keyed: true });
        const at = (route: CompiledRoute) => ({ draw: by, bucket: bucketOf(route.sticky!.seed, key) });
        expect(goes(table(), at(table()))).toBe(goes(table(), at(table())));
      }),
    );
  });
  it('hashes with the salt of the rollout while there is one, and reads the header in small letters', () => {
    expect(trial(0.5, { keyed: true }).sticky).toEqual({ header: 'x-user-id', seed: seedOf('salt') });
    expect(compileRoute('e', routeOf(sides, { old: 1 }, { sticky })).sticky!.seed).toBe(seedOf('ordinary'));
    expect(trial(0.5).sticky).toBeUndefined();
  });
});

describe.each([0.01, 0.05, 0.25, 0.5])('100,000 requests at a share of %d', (one) => {
  it('split by it, drawn or by user', () => {
    const random = seededRandom(Math.round(1 / one));
    const [drawn, keyed] = [trial(one), trial(one, { keyed: true })];
    let byDraw = 0;
    let byUser = 0;
    for (let at = 0; at < 100_000; at += 1) {
      if (goes(drawn, { draw: random() }) === 'new') byDraw += 1;
      if (goes(keyed, { bucket: bucketOf(keyed.sticky!.seed, `user-${at}`) }) === 'new') byUser += 1;
    }
    expect(chiSquare(byDraw, 100_000, one)).toBeLessThan(10.83);
    expect(chiSquare(byUser, 100_000, one)).toBeLessThan(10.83);
  });
});

describe('users of an ordinary split', () => {
  const three = [target('a', 3), target('b', 2), target('c', 1)];
  const split = (a: number, b: number, c: number) => compileRoute('e', routeOf(three, { c, a, b }, { sticky }));

  it('fall into parts that lie newest first, whatever the weights', () => {
    for (const [a, b, c] of [
      [0.2, 0.3, 0.5],
      [0.5, 0.3, 0.2],
    ] as const)
      expect(split(a, b, c).arms.map((arm) => arm.target.deployment)).toEqual(['a', 'b', 'c']);
  });
  it('move only as far as the weight between two versions moves', () => {
    const [before, after] = [split(0.2, 0.3, 0.5), split(0.4, 0.1, 0.5)];
    for (let at = 0; at < bucketCount; at += 1) {
      const moved = goes(before, { bucket: at }) !== goes(after, { bucket: at });
      expect(moved).toBe(at >= 2_000 && at < 4_000);
    }
  });
  it('keep a bucket for the smallest share, and leave none out', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 1e-7, max: 1, noNaN: true }), { minLength: 1, maxLength: 64 }),
        (weights) => {
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          const targets = weights.map((_, at) => target(`d${at}`, at + 1, { endpoint: `e${at % 3}` }));
          const shares = Object.fromEntries(weights.map((weight, at) => [`d${at}`, weight / total]));
          const { arms } = compileRoute('e', routeOf(targets, shares, { sticky }));
          const ends = arms.map((arm) => arm.untilBucket);
          expect(ends.at(-1)).toBe(bucketCount);
          for (let at = 0; at < ends.length; at += 1) expect(ends[at]).toBeGreaterThan(at === 0 ? 0 : ends[at - 1]!);
        },
      ),
    );
  });
});
