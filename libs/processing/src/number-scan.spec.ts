import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Precision, scanNumbers, startScan } from './number-scan.ts';

function scan(text: string, precision: Precision = 'double') {
  startScan();
  const scanned = scanNumbers(Buffer.from(text), 0, precision);
  return scanned && { shape: scanned.shape, values: [...scanned.values], end: scanned.end };
}

const digits = (min: number, max: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: min, maxLength: max }).map((list) => list.join(''));

/** Number texts of JSON's grammar: long and short, around the limits of what a double holds, with exponents of any size. */
const numberText = fc
  .record({
    sign: fc.constantFrom('', '-'),
    whole: fc.oneof(
      fc.constant('0'),
      digits(0, 22).map((rest) => `7${rest}`),
      fc.nat().map(String),
    ),
    fraction: fc.oneof(
      fc.constant(''),
      digits(1, 25).map((text) => `.${text}`),
    ),
    exponent: fc.oneof(
      { weight: 3, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.integer({ min: -400, max: 400 }).map((n) => `e${n}`) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 30 }).map((n) => `E+0${n}`) },
    ),
  })
  .map(({ sign, whole, fraction, exponent }) => sign + whole + fraction + exponent);
const printed = fc
  .oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.float({ noNaN: true, noDefaultInfinity: true }))
  .map((value) => JSON.stringify(value));
const anyNumber = fc.oneof(numberText, printed);

describe('scanning numbers', () => {
  it('gives exactly the doubles of JSON.parse', () => {
    fc.assert(
      fc.property(fc.array(anyNumber, { minLength: 1, maxLength: 40 }), (texts) => {
        const text = `[${texts.join(',')}]`;
        const { values } = scan(text)!;
        const wanted = JSON.parse(text) as number[];
        for (const [i, value] of wanted.entries()) expect(Object.is(values[i], value), texts[i]).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  it('gives exactly the float32 of JSON.parse, rounded twice as JavaScript rounds', () => {
    fc.assert(
      fc.property(fc.array(anyNumber, { minLength: 1, maxLength: 40 }), (texts) => {
        const text = `[${texts.join(',')}]`;
        const values = Float32Array.from(scan(text, 'single')!.values);
        const wanted = Float32Array.from(JSON.parse(text) as number[]);
        for (const [i, value] of wanted.entries()) expect(Object.is(values[i], value), texts[i]).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  it('keeps float32 exact right beside the middle between two of them', () => {
    const middle = fc
      .tuple(fc.integer({ min: 0x3000_0000, max: 0x4f00_0000 }), fc.integer({ min: -3, max: 3 }))
      .map(([bits, off]) => {
        const [low, high] = new Float32Array(Uint32Array.of(bits, bits + 1).buffer) as unknown as [number, number];
        return (low + high) / 2 + off * 2 ** -53 * low;
      });
    fc.assert(
      fc.property(middle, fc.integer({ min: 17, max: 19 }), (value, precision) => {
        const text = `[${value.toPrecision(precision)}]`;
        expect(Math.fround(scan(text, 'single')!.values[0]!)).toBe(Math.fround(JSON.parse(text)[0]));
      }),
      { numRuns: 5000 },
    );
  });

  it('reads shape and order of nested lists with any spaces', () => {
    const text = ' [ [ [1,2] , [3 ,4],\n[5,6]] ,\t[[7,8],[9,10],[11,12]]\r] ';
    expect(scan(text)).toEqual({
      shape: [2, 3, 2],
      values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
      end: text.length - 1,
    });
    expect(scan('[-0]')!.values).toEqual([-0]);
  });

  it.each([
    '[]', '[[]]', '[[1],[]]', '[[1,2],[3]]', '[[1],2]', '[1,[2]]', '[[[1]],[2]]', '[1,]', '[,1]', '[1 2]', '[01]', '[-01]', '[1.]', '[.5]',
    '[+1]', '[-]', '[1e]', '[1e+]', '[0x1]', '[1.e3]', '[null]', '["1"]', '[true]', '[{}]', '[NaN]', '[1}', '[[1]}', '[--1]', '[1_000]', '[00]',
    `${'['.repeat(17)}1${']'.repeat(17)}`,
  ])('leaves %s to JSON.parse', (text) => {
    expect(scan(text)).toBeUndefined();
  }); // biome-ignore format: a table

  it('holds several lists of one body side by side', () => {
    startScan();
    const text = Buffer.from(`[${Array(9000).fill(1)}][${Array(9000).fill(2)}]`);
    const one = scanNumbers(text, 0, 'double')!;
    const two = scanNumbers(text, one.end, 'double')!;
    expect(new Set(one.values)).toEqual(new Set([1]));
    expect(new Set(two.values)).toEqual(new Set([2]));
  });
});
