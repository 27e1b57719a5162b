import { comparison as comparisonSchema } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ComparedOutput, comparisonFor, cosineAt, equalExactly, equalWithin, greatestAt, outputsAgree,
} from './comparison.decide.ts'; // biome-ignore format: one list

const output = (values: number[], fields: Partial<ComparedOutput> = {}): ComparedOutput => ({
  name: 'y',
  datatype: 'FP32',
  shape: [values.length],
  bytes: new Uint8Array(Float32Array.from(values).buffer),
  ...fields,
});
const wholes = (...values: number[]) =>
  output(values, { datatype: 'INT32', bytes: new Uint8Array(Int32Array.from(values).buffer) });
const policy = (fields: object = {}) => comparisonSchema.parse(fields);
const range = (length: number, at: (index: number) => number) => Array.from({ length }, (_, index) => at(index));
const finite = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 });
const vectors = fc.array(finite, { minLength: 2, maxLength: 40 });
const half = (...bits: number[]) =>
  output(bits, { datatype: 'FP16', bytes: new Uint8Array(Uint16Array.from(bits).buffer) });

describe('how an output is compared when the policy does not say', () => {
  it.each([
    ['whole numbers', wholes(1, 2), 'exact'],
    ['text', output([], { datatype: 'BYTES', bytes: Buffer.from('abc') }), 'exact'],
    ['booleans', output([1], { datatype: 'BOOL' }), 'exact'],
    ['one figure', output([3.5], { shape: [1, 1] }), 'numeric'],
    ['a scalar', output([3.5], { shape: [] }), 'numeric'],
    ['a few figures', output([10, 20, 30, 40], { shape: [1, 4] }), 'numeric'],
    ['shares that add to 1', output([0.1, 0.2, 0.7, 0.25, 0.25, 0.5], { shape: [2, 3] }), 'argmax'],
    [
      'a thousand shares',
      output(
        range(1_000, () => 0.001),
        { shape: [1, 1_000] },
      ),
      'argmax',
    ],
    ['scores by their name', output([-3, 4], { name: 'logits', shape: [1, 2] }), 'argmax'],
    [
      'a vector',
      output(
        range(384, (i) => Math.sin(i)),
        { shape: [1, 384] },
      ),
      'cosine',
    ],
    [
      'a vector of token states',
      output(
        range(64, (i) => Math.cos(i)),
        { shape: [1, 2, 32] },
      ),
      'cosine',
    ],
    ['nothing', output([], { shape: [0, 3] }), 'numeric'],
  ] as const)('%s', (_what, tensor, by) => {
    expect(comparisonFor(tensor)).toBe(by);
  });
});

describe('exactly', () => {
  it('wants type, shape and bytes', () => {
    expect(equalExactly(wholes(1, 2), wholes(1, 2))).toBe(true);
    expect(equalExactly(wholes(1, 2), wholes(1, 3))).toBe(false);
    expect(equalExactly(wholes(1, 2), { ...wholes(1, 2), shape: [1, 2] })).toBe(false);
    expect(equalExactly(wholes(1, 2), { ...wholes(1, 2), datatype: 'UINT32' })).toBe(false);
  });
});

describe('by numbers', () => {
  const within = (wanted: number, got: number, absolute = 0.001, relative = 0.01) =>
    equalWithin({ stable: [wanted], candidate: [got], row: 1 }, { absolute, relative });
  it.each([
    [100, 101, true],
    [100, 101.1, false],
    [-100, -99, true],
    [0, 0.001, true],
    [0, 0.0011, false],
    [1, -1, false],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, true],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, false],
    [Number.POSITIVE_INFINITY, 1, false],
    [1, Number.POSITIVE_INFINITY, false],
    [Number.NaN, Number.NaN, false],
    [1, Number.NaN, false],
  ])('stable %s, candidate %s: %s', (wanted, got, agrees) => {
    expect(within(wanted, got)).toBe(agrees);
  });

  it('agrees with itself at any tolerance, and a wider one never takes an agreement back', () => {
    fc.assert(
      fc.property(vectors, vectors, finite.map(Math.abs), finite.map(Math.abs), (a, b, absolute, relative) => {
        const length = Math.min(a.length, b.length);
        const pair = { stable: a.slice(0, length), candidate: b.slice(0, length), row: length };
        expect(equalWithin({ ...pair, candidate: pair.stable }, { absolute: 0, relative: 0 })).toBe(true);
        const narrow = equalWithin(pair, { absolute: absolute / 2, relative: relative / 2 });
        if (narrow) expect(equalWithin(pair, { absolute, relative })).toBe(true);
      }),
    );
  });
});

describe('as vectors', () => {
  it.each([
    [[1, 0], [2, 0], 1],
    [[1, 0], [0, 1], 0],
    [[1, 1], [-1, -1], -1],
    [[0, 0], [0, 0], 1],
    [[0, 0], [1, 0], 0],
  ])('%j and %j: %s', (stable, candidate, cosine) => {
    expect(cosineAt({ stable, candidate, row: 2 }, 0)).toBeCloseTo(cosine, 12);
  });

  it('knows no length, no order of the two, and stays within −1 and 1', () => {
    fc.assert(
      fc.property(vectors, vectors, fc.double({ min: 0.1, max: 10, noNaN: true }), (a, b, factor) => {
        const row = Math.min(a.length, b.length);
        const [stable, candidate] = [a.slice(0, row), b.slice(0, row)];
        const cosine = cosineAt({ stable, candidate, row }, 0);
        expect(Math.abs(cosine)).toBeLessThanOrEqual(1 + 1e-9);
        expect(cosineAt({ stable: candidate, candidate: stable, row }, 0)).toBeCloseTo(cosine, 9);
        const longer = candidate.map((value) => value * factor);
        if (longer.every((value, i) => (value === 0) === (candidate[i] === 0) && Math.abs(value) > 1e-100))
          expect(cosineAt({ stable, candidate: longer, row }, 0)).toBeCloseTo(cosine, 6);
      }),
    );
  });

  it('looks at each row, and NaN agrees with nothing', () => {
    const shape = [2, 2];
    const stable = output([1, 0, 0, 1], { shape });
    const by = policy({ by: 'cosine' });
    expect(outputsAgree([stable], [output([3, 0, 0, 2], { shape })], by)).toBe(true);
    expect(outputsAgree([stable], [output([3, 0, 2, 0], { shape })], by)).toBe(false);
    expect(outputsAgree([stable], [output([1, 0, Number.NaN, 1], { shape })], by)).toBe(false);
  });
});

describe('by the greatest', () => {
  it.each([
    [[1, 3, 2], 1],
    [[3, 3, 2], 0],
    [[-5, -3, -4], 1],
    [[Number.NEGATIVE_INFINITY, -1], 1],
    [[1, Number.NaN], -1],
    [[Number.NaN, 1], -1],
  ])('of %j is %i', (values, place) => {
    expect(greatestAt(values, 0, values.length)).toBe(place);
  });

  it('is the greatest, and any growing function keeps it', () => {
    fc.assert(
      fc.property(vectors, (values) => {
        const place = greatestAt(values, 0, values.length);
        expect(Math.max(...values)).toBe(values[place]);
        expect(
          greatestAt(
            values.map((value) => value / 4 + 7e9),
            0,
            values.length,
          ),
        ).toBeLessThanOrEqual(place);
      }),
    );
  });

  it('compares each row of the batch, of scores that differ in scale', () => {
    const shape = [2, 3];
    const stable = output([0.1, 0.8, 0.1, 0.6, 0.3, 0.1], { shape });
    expect(outputsAgree([stable], [output([0, 9, 1, 9, 8, 7], { shape })], policy({ by: 'argmax' }))).toBe(true);
    expect(outputsAgree([stable], [output([0, 9, 1, 8, 9, 7], { shape })], policy())).toBe(false);
  });
});

describe('answers of a pair', () => {
  it('agree output by output, by name and in any order', () => {
    const pair = [output([1, 2]), { ...wholes(3), name: 'n' }];
    expect(outputsAgree(pair, [...pair].reverse(), policy())).toBe(true);
    expect(outputsAgree(pair, pair.slice(1), policy())).toBe(false);
    expect(outputsAgree(pair.slice(1), pair, policy())).toBe(false);
    expect(outputsAgree(pair, [pair[0]!, { ...wholes(4), name: 'n' }], policy())).toBe(false);
    expect(outputsAgree(pair, [pair[0]!, { ...pair[1]!, name: 'other' }], policy())).toBe(false);
  });

  it('compares floating types of different width, and nothing of different shape', () => {
    expect(outputsAgree([output([1, 2])], [half(0x3c00, 0x4000)], policy())).toBe(true);
    expect(outputsAgree([output([1, 2])], [half(0x3c00, 0x4100)], policy())).toBe(false);
    expect(outputsAgree([output([1, 2])], [half(0x3c00, 0x4000)], policy({ by: 'exact' }))).toBe(false);
    expect(outputsAgree([output([1, 2])], [output([1, 2], { shape: [2, 1] })], policy())).toBe(false);
    expect(outputsAgree([output([1, 2])], [output([1, 2, 3], { shape: [2] })], policy())).toBe(false);
  });

  it('takes text by its bytes whatever the policy names', () => {
    const text = output([], { datatype: 'BYTES', bytes: Buffer.from('abc'), shape: [1] });
    for (const by of ['auto', 'exact', 'numeric', 'cosine', 'argmax']) {
      expect(outputsAgree([text], [text], policy({ by }))).toBe(true);
      expect(outputsAgree([text], [{ ...text, bytes: Buffer.from('abd') }], policy({ by }))).toBe(false);
    }
  });
});
