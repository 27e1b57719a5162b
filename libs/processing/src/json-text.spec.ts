import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonText } from './json-text.ts';

const write = (values: Float32Array): string =>
  new JsonText(1).float32List(values, 0, values.length).finish().toString();

/** Every bit pattern of a float32 is as likely as any other, so exponents of all sizes come up. */
const anyBits = fc
  .integer({ min: 0, max: 0xffff_ffff })
  .map((bits) => new Float32Array(Uint32Array.of(bits).buffer)[0]!);

describe('float32 as JSON', () => {
  it.each([
    [0, '0'], [-0, '-0'], [1, '1'], [-1, '-1'], [0.1, '0.1'], [0.5, '0.5'], [0.6, '0.6'], [0.3, '0.3'], [0.7, '0.7'], [0.123456, '0.123456'], [12.34, '12.34'], [98765.4, '98765.4'], [-2.25, '-2.25'], [100, '100'],
    [16_777_216, '16777216'], [123_456_792, '123456792'], [999_999_999, '1000000000'], [1e-7, '0.0000001'], [1e-8, '1e-8'], [1e-6, '0.000001'],
    [3.4028234663852886e38, '3.4028235e+38'], [1.401298464324817e-45, '1.4013e-45'],
    [Number.NaN, 'null'], [Number.POSITIVE_INFINITY, 'null'], [Number.NEGATIVE_INFINITY, 'null'],
  ])('writes %d as %s', (value, text) => {
    expect(write(Float32Array.of(value)).slice(1, -1)).toBe(text);
  }); // biome-ignore format: a table

  it('reads back as the same float32, whatever its bits', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(anyBits, fc.float()), { maxLength: 64 }), (list) => {
        const values = Float32Array.from(list);
        const back = JSON.parse(write(values)) as (number | null)[];
        expect(back.length).toBe(values.length);
        for (const [i, value] of values.entries())
          expect(Object.is(Math.fround(back[i] ?? Number.NaN), Number.isFinite(value) ? value : Number.NaN)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('has room for lists of the longest numbers', () => {
    const values = new Float32Array(64).fill(-9.99999984e20);
    expect(Float32Array.from(JSON.parse(write(values)))).toEqual(values);
  });

  it('takes at most nine digits', () => {
    fc.assert(
      fc.property(fc.double({ min: -1, max: 1, noNaN: true }), (value) => {
        const digits = write(Float32Array.of(value))
          .replace(/e.*$/, '')
          .replace(/[^0-9]/g, '')
          .replace(/^0+/, '');
        expect(digits.length).toBeLessThanOrEqual(9);
      }),
      { numRuns: 2000 },
    );
  });

  it('grows for what does not fit, and escapes strings', () => {
    const text = new JsonText(1).raw('{').string('a"é\u0000').raw(':').string('日本'.repeat(500)).raw('}').finish();
    expect(JSON.parse(text.toString())).toEqual({ 'a"é\u0000': '日本'.repeat(500) });
  });
});
