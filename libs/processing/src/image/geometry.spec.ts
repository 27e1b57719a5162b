import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planGeometry, reducedSides, roundHalfEven } from './geometry.ts';

type Wish = Parameters<typeof planGeometry>[1];
const box = (width: number, height: number) => ({ width, height });

describe('the geometry of a picture', () => {
  it.each<[string, [number, number], Wish, [number, number], [number, number, number, number]]>([
    ['nothing asked', [320, 240], {}, [320, 240], [320, 240, 0, 0]],
    ['stretched', [320, 240], { size: box(50, 60) }, [50, 60], [50, 60, 0, 0]],
    ['shortest edge', [320, 240], { size: { shortestEdge: 224 } }, [298, 224], [298, 224, 0, 0]],
    ['shortest edge, tall', [233, 311], { size: { shortestEdge: 224 } }, [224, 298], [224, 298, 0, 0]],
    ['longest edge within', [600, 480], { size: { shortestEdge: 800, longestEdge: 1333 } }, [1000, 800], [1000, 800, 0, 0]],
    ['longest edge beyond', [1000, 300], { size: { shortestEdge: 800, longestEdge: 1333 } }, [1333, 400], [1333, 400, 0, 0]],
    ['longest edge alone', [1000, 500], { size: { longestEdge: 640 } }, [640, 320], [640, 320, 0, 0]],
    ['only shrinking', [100, 50], { size: { longestEdge: 640 }, onlyShrink: true }, [100, 50], [100, 50, 0, 0]],
    ['multiples', [100, 50], { size: { longestEdge: 640 }, onlyShrink: true, multipleOf: 32 }, [96, 64], [96, 64, 0, 0]],
    ['a line of text', [401, 60], { size: { height: 48, maxWidth: 320 } }, [320, 48], [320, 48, 0, 0]],
    ['a short line, filled', [100, 50], { size: { height: 48 }, pad: box(320, 48) }, [96, 48], [320, 48, 0, 0]],
    ['filling and cutting', [320, 240], { size: box(100, 100), fit: 'cover' }, [133, 100], [100, 100, -16, 0]],
    ['fitting in', [320, 240], { size: box(100, 100), fit: 'contain' }, [100, 75], [100, 100, 0, 12]],
    ['fitting in at the start', [320, 240], { size: box(100, 100), fit: 'contain', padAt: 'start' }, [100, 75], [100, 100, 0, 0]],
    ['the middle, half a pixel down', [229, 100], { centerCrop: box(224, 100) }, [229, 100], [224, 100, -2, 0]],
    ['the middle, half to even', [231, 100], { centerCrop: box(224, 100), cropRounding: 'even' }, [231, 100], [224, 100, -4, 0]],
    ['a middle larger than the picture', [5, 5], { centerCrop: box(8, 8) }, [5, 5], [8, 8, 2, 2]],
    ['filled around', [10, 10], { pad: box(14, 6), padAt: 'center' }, [10, 10], [14, 10, 2, 0]],
  ])('%s', (_what, [width, height], wish, resized, [w, h, left, top]) => { // biome-ignore format: rows of a table
    expect(planGeometry({ width, height }, wish)).toEqual({ resized: box(...resized), width: w, height: h, left, top });
  }); // biome-ignore format: rows of a table

  it('refuses what would be too large', () => {
    expect(() => planGeometry(box(10_000, 1), { size: { shortestEdge: 500 } })).toThrow('at most 16384 a side');
  });

  it('answers the box that was asked for, and at least a pixel, whatever the picture', () => {
    const side = fc.integer({ min: 100, max: 3000 });
    const wanted = fc.record({ width: fc.integer({ min: 1, max: 500 }), height: fc.integer({ min: 1, max: 500 }) });
    fc.assert(
      fc.property(side, side, wanted, fc.constantFrom('stretch', 'cover', 'contain'), (width, height, size, fit) => {
        const made = planGeometry({ width, height }, { size, fit });
        expect([made.width, made.height]).toEqual([size.width, size.height]);
        expect(Math.min(made.resized.width, made.resized.height)).toBeGreaterThan(0);
        if (fit === 'contain')
          expect(made.resized.width <= size.width && made.resized.height <= size.height).toBe(true);
        if (fit === 'cover') expect(made.resized.width >= size.width && made.resized.height >= size.height).toBe(true);
      }),
    );
  });

  it('rounds halves to even, as Python does', () => {
    expect([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6].map(roundHalfEven)).toEqual([0, 2, 2, 0, -2, 2, 3]);
  });

  it.each<[[number, number], [number, number], [number, number] | undefined]>([
    [
      [4000, 3000],
      [224, 224],
      [672, 672],
    ],
    [
      [4000, 500],
      [224, 224],
      [672, 500],
    ],
    [[600, 500], [224, 224], undefined],
  ])('lets %j for %j be brought to %j while it is decoded', (from, size, to) => {
    const plan = planGeometry(box(...from), { size: box(...size) });
    expect(reducedSides(box(...from), plan)).toEqual(to && box(...to));
  });
});
