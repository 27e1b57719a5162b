import { decodeOptions, preparationOptions } from '@perch/contracts';
import { imageChoices, imageFilters } from '@perch/contracts/plain';
import { describe, expect, it } from 'vitest';
import { checkDecodeOptions, checkPreparationOptions } from './check-options.ts';

/** Values of every kind, good for one option and bad for another. */
const values: unknown[] = [
  undefined, null, true, false, 0, 1, -1, 1.5, 300, 301, 1024, 1025, 16_384, 16_385, 268_435_456, 268_435_457, Number.NaN,
  Number.POSITIVE_INFINITY, '', 'zero', 'no such word', [], [1], [0.5, 0], [1, 2, 3], [0, 0, 0], [-1, 0, 256], [255, 255, 255],
  [1, 2, '3'], [1, 2, 3, 4], {}, { height: 224 }, { width: 224 }, { height: 224, width: 224 }, { height: 0, width: 224 },
  { height: 224, width: 224, depth: 3 }, { shortestEdge: 256 }, { shortestEdge: 256, longestEdge: 512 },
  { longestEdge: 512 }, { height: 48, maxWidth: 320 }, { height: 48, maxWidth: undefined }, { maxWidth: 320 },
  { height: '48', width: 48 }, { shortestEdge: 16_385 }, [{ height: 1, width: 1 }],
  ...Object.values(imageChoices).flat(), ...imageFilters,
]; // biome-ignore format: rows of a table

const verdict = (check: () => unknown): string => {
  try {
    check();
    return 'taken';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

describe('options of pictures, checked without a schema library', () => {
  const cases = [
    ['decodeImage', decodeOptions, checkDecodeOptions],
    ['imageTensor', preparationOptions, checkPreparationOptions],
  ] as const;
  for (const [what, schema, check] of cases)
    it(`${what}: every option takes and refuses what its schema does`, () => {
      for (const name of [...Object.keys(schema.shape), 'resze'])
        for (const value of values) {
          const options = { [name]: value };
          // a schema refuses a name that it does not know also where nothing is given for it
          const wanted = value === undefined || schema.safeParse(options).success ? 'taken' : 'invalid';
          expect([options, verdict(() => check(options as never))]).toEqual([options, wanted]);
        }
    });

  it('fills in what decoding leaves out', () => {
    expect(checkDecodeOptions({ maxBytes: 5, alpha: undefined })).toEqual(decodeOptions.parse({ maxBytes: 5 }));
  });

  it.each([
    [{ resample: 'cubic' }, 'image tensor: resample: wants one of nearest, box, bilinear'],
    [{ resze: 1 }, 'image tensor: resze: is no option; there are size, fit,'],
    [{ size: { width: 3 }, fit: 1 }, 'image tensor: size: wants height and width, or shortestEdge'],
    [{ antialias: false, resample: 'lanczos' }, 'image tensor: antialias: false wants resample bilinear or nearest'],
    [[], 'image tensor: wants an object of options'],
  ])('%j is refused in words', (options, words) => {
    expect(() => checkPreparationOptions(options as never)).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringContaining(words) })); // biome-ignore format: one row
  });
});
