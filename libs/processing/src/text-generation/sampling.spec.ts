import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawToken, greatestOf, likelihoods, mostLikely, type Sampling } from './sampling.ts';
import { seededRandom } from './seeded-random.ts';

const all: Sampling = { temperature: 1, topK: 0, topP: 1 };
const logitsOf = (chances: readonly number[]) => Float32Array.from(chances, Math.log);
/** In steps of 1/16: what is closer than rounding is a tie for one and not for the other. */
const logit = fc.integer({ min: -320, max: 320 }).map((step) => step / 16);
const logits = fc.array(logit, { minLength: 1, maxLength: 60 });
const sampling = fc.record({
  temperature: fc.float({ min: Math.fround(0.05), max: 5, noNaN: true }),
  topK: fc.nat(70),
  topP: fc.float({ min: Math.fround(0.01), max: 1, noNaN: true }),
});
const softmax = (values: Float32Array, temperature: number): number[] => {
  const most = Math.max(...values);
  const weights = Array.from(values, (value) => Math.exp((value - most) / temperature));
  const sum = weights.reduce((total, one) => total + one, 0);
  return weights.map((one) => one / sum);
};
const sorted = (values: Float32Array) => Array.from(values.keys()).sort((a, b) => values[b]! - values[a]! || a - b);

/** The plain way: sort all, cut to `topK`, then to `topP` of what is left. */
function allowedPlainly(values: Float32Array, { temperature, topK, topP }: Sampling): Set<number> {
  const kept = sorted(values).slice(0, topK || values.length);
  const chances = softmax(
    Float32Array.from(kept, (id) => values[id]!),
    temperature,
  );
  let held = 0;
  const count = chances.findIndex((chance) => {
    held += chance;
    return held >= topP - 1e-9;
  });
  // where rounding decides, one more is allowed
  return new Set(kept.slice(0, count < 0 ? kept.length : count + 2));
}

describe('drawing a token', () => {
  it('finds the greatest as a full sort does, ties by the lower id', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1, maxLength: 50 }),
        fc.nat(60),
        (list, count) => {
          const values = Float32Array.from(list);
          expect([...mostLikely(values, count)]).toEqual(sorted(values).slice(0, count));
          expect(greatestOf(values)).toBe(sorted(values)[0]);
        },
      ),
    );
  });

  it('never draws what top-k and top-p leave out', () => {
    fc.assert(
      fc.property(logits, sampling, fc.integer(), (list, settings, seed) => {
        const values = Float32Array.from(list);
        const allowed = allowedPlainly(values, settings);
        const random = seededRandom(seed);
        for (let i = 0; i < 8; i++) expect(allowed).toContain(drawToken(values, settings, random));
      }),
    );
  });

  it('takes the most likely one at temperature 0, top-k 1 and a tiny top-p', () => {
    fc.assert(
      fc.property(logits, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (list, chance) => {
        const values = Float32Array.from(list);
        for (const one of [
          { ...all, temperature: 0 },
          { ...all, topK: 1 },
          { ...all, topP: 1e-9 },
        ])
          expect(drawToken(values, one, () => chance)).toBe(greatestOf(values));
      }),
    );
  });

  /** Chi-square of 40,000 draws against what they should be; 0.1 % of right samplers would pass the bound by chance. */
  const chances = [0.4, 0.3, 0.15, 0.1, 0.05];
  const bound = [0, 10.83, 13.82, 16.27, 18.47];
  it.each([
    ['all', all, chances],
    ['temperature 2', { ...all, temperature: 2 }, softmax(logitsOf(chances), 2)],
    ['top-k 3', { ...all, topK: 3 }, [0.4 / 0.85, 0.3 / 0.85, 0.15 / 0.85]],
    ['top-p 0.69', { ...all, topP: 0.69 }, [0.4 / 0.7, 0.3 / 0.7]],
    ['top-k 3 and top-p 0.8', { ...all, topK: 3, topP: 0.8 }, [0.4 / 0.7, 0.3 / 0.7]],
  ] as const)('draws as often as the distribution says: %s', (_, settings, wanted) => {
    const random = seededRandom(20_261_121);
    const draws = 40_000;
    const counts = chances.map(() => 0);
    for (let i = 0; i < draws; i++) counts[drawToken(logitsOf(chances), settings, random)]! += 1;
    expect(counts.slice(wanted.length).every((count) => count === 0)).toBe(true);
    const square = wanted.reduce((sum, chance, i) => sum + (counts[i]! - draws * chance) ** 2 / (draws * chance), 0);
    expect(square).toBeLessThan(bound[wanted.length - 1]!);
  });

  it('refuses logits that are no numbers, and goes around those that are -∞', () => {
    const none = Number.NEGATIVE_INFINITY;
    for (const bad of [
      [0, Number.NaN],
      [Number.NaN, 0],
      [0, Number.POSITIVE_INFINITY],
      [none, none],
    ])
      expect(() => drawToken(Float32Array.from(bad), all, () => 0.5)).toThrow('logits that are no numbers');
    for (let i = 0; i < 20; i++) expect(drawToken(Float32Array.of(none, 1, none), all, () => i / 20)).toBe(1);
  });

  it('tells natural logarithms of the model’s own distribution', () => {
    const { logprob, top } = likelihoods(logitsOf(chances), 2, 2);
    expect(Math.exp(logprob)).toBeCloseTo(0.15, 6);
    expect(top.map(({ id }) => id)).toEqual([0, 1]);
    expect(Math.exp(top[1]!.logprob)).toBeCloseTo(0.3, 6);
  });
});

describe('random numbers of a seed', () => {
  const numbers = (seed: number, count = 5) => {
    const random = seededRandom(seed);
    return Array.from({ length: count }, random);
  };

  it('are the same each time, and others for each seed', () => {
    expect(numbers(7)).toEqual(numbers(7));
    const firsts = [0, 1, 2, -1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER].map(
      (seed) => numbers(seed)[0],
    );
    expect(new Set(firsts).size).toBe(firsts.length);
    for (const one of firsts) expect(one! >= 0 && one! < 1).toBe(true);
  });

  it('stay what they are from release to release', () => {
    expect(numbers(42, 3)).toMatchInlineSnapshot(`
      [
        0.7031746126764666,
        0.6182927699456127,
        0.33504536681117725,
      ]
    `);
  });
});
