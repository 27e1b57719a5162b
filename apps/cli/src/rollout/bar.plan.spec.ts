import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fillBar, intervalBar, logBar, logShare, scaleLine } from './bar.plan.ts';
import { glyphsFor } from './glyphs.ts';
import { countText, figureText, percentText, spanText } from './number.plan.ts';

const glyphs = glyphsFor({ LANG: 'C' });
const share = fc.double({ min: 0, max: 1, noNaN: true });

describe('bars', () => {
  it.each([
    [0, '..........'],
    [0.001, '#.........'],
    [0.5, '#####.....'],
    [0.999, '#########.'],
    [1, '##########'],
  ])('%d of a whole', (part, bar) => expect(fillBar(part, 10, glyphs)).toBe(bar));

  it.each([
    ['bounds, rate and limit', { lower: 0, upper: 0.5, point: 0.2, most: 1, limit: 0.8 }, '|-o--| !  '],
    ['an upper bound beyond the limit', { lower: 0, upper: 1, point: 0.2, most: 1, limit: 0.5 }, '|-o--!---|'],
    ['bounds beyond the bar', { lower: 0, upper: 9, point: 0.2, most: 1, limit: 0.8 }, '|-o----!->'],
    ['nothing counted', { lower: 0, upper: 1, most: 1, limit: 0.1 }, '|!-------|'],
    ['no width at all', { lower: 0.5, upper: 0.5, point: 0.5, most: 1, limit: 0 }, '!    o    '],
  ])('%s', (_name, interval, bar) => expect(intervalBar(interval, 10, glyphs)).toBe(bar));

  it.each([
    [0, '.....!....'],
    [0.01, 'o....!....'],
    [1e-9, 'o....!....'],
    [1, '#####o....'],
    [1e300, '#####!###o'],
  ])('E of %d on its scale', (e, bar) => expect(logBar(e, 1, { least: 0.01, most: 100 }, 10, glyphs)).toBe(bar));

  it('have the width they are given, whatever they show', () => {
    fc.assert(
      fc.property(share, share, share, share, fc.integer({ min: 2, max: 100 }), (a, b, c, d, width) => {
        const interval = { lower: Math.min(a, b), upper: Math.max(a, b), point: c, most: 1, limit: d };
        expect(intervalBar(interval, width, glyphs)).toHaveLength(width);
        expect(fillBar(a, width, glyphs)).toHaveLength(width);
        expect(logShare(a, { least: 0.01, most: 100 })).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('figures below a bar keep apart, the first one first', () => {
    expect(scaleLine([[5, '0.5'], [0, '0'], [9, '1.0']], 10)).toBe('0   0.5   '); // biome-ignore format: one row
    expect(scaleLine([[5, 'wide as can be']], 5)).toBe('     ');
  });
});

describe('numbers for people', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [12_311, '12,311'],
    [9_999_999, '9,999,999'],
    [12_345_678, '12.3 M'],
    [1e9, '1000 M'],
  ])('%d requests', (count, text) => expect(countText(count)).toBe(text));
  it.each([
    [0, '0'],
    [0.00012345, '0.000123'],
    [0.00001, '1.0e-5'],
    [0.6231, '0.623'],
    [1_234.5, '1,235'],
    [1e9, '1.0e+9'],
    [Number.POSITIVE_INFINITY, 'infinite'],
  ])('the figure %d', (value, text) => expect(figureText(value)).toBe(text));
  it('a share', () => expect(percentText(0.0016)).toBe('0.16 %'));
  it.each([
    [0, '0 s'],
    [300, '< 1 s'],
    [42_000, '42 s'],
    [130_000, '2 min 10 s'],
    [119_700, '2 min'],
    [3_900_000, '1 h 5 min'],
    [3_599_999, '1 h'],
    [59_999, '1 min'],
    [3 * 86_400_000, '3 d'],
  ])('%d ms', (ms, text) => expect(spanText(ms)).toBe(text));
});
