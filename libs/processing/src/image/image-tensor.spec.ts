import { describe, expect, it } from 'vitest';
import { fromHalves } from '../half.ts';
import { asFloat32, asUint8, asUint16 } from '../tensor.ts';
import { imageTensor, type PreparationOptions } from './image-tensor.ts';
import { plainPicture } from './picture.fake.ts';
import { crop, type Picture, toGray } from './picture.ts';
import { resize } from './resample.ts';

/** Two by two: red, green / blue, white. */
const four: Picture = {
  width: 2,
  height: 2,
  channels: 3,
  data: Uint8Array.of(255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255),
};
const values = (options: PreparationOptions, picture: Picture | Picture[] = four) => {
  const tensor = imageTensor(picture, options);
  return { shape: tensor.shape, values: [...asFloat32(tensor)] };
};

describe('a tensor of pictures', () => {
  it.each<[PreparationOptions, number[], number[]]>([
    [{}, [1, 3, 2, 2], [1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]],
    [{ channels: 'bgr' }, [1, 3, 2, 2], [0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1]],
    [{ layout: 'nhwc' }, [1, 2, 2, 3], [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1]],
    [{ rescaleFactor: 1 }, [1, 3, 2, 2], [255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255]],
    [{ imageMean: [0.5], imageStd: [0.5] }, [1, 3, 2, 2], [1, -1, -1, 1, -1, 1, -1, 1, -1, -1, 1, 1]],
    [{ imageMean: [0, 1, 0], imageStd: [1, 2, 4] }, [1, 3, 2, 2], [1, 0, 0, 1, -0.5, 0, -0.5, 0, 0, 0, 0.25, 0.25]],
    [{ centerCrop: { width: 1, height: 1 } }, [1, 3, 1, 1], [1, 0, 0]],
    [{ pad: { width: 3, height: 2 }, channels: 'gray', rescaleFactor: 1 }, [1, 1, 2, 3], [76, 150, 0, 29, 255, 0]],
    [{ pad: { width: 3, height: 2 }, padColor: [0, 51, 255], padAt: 'start' }, [1, 3, 2, 3], [1, 0, 0, 0, 1, 0, 0, 1, 0.2, 0, 1, 0.2, 0, 0, 1, 1, 1, 1]],
    [{ pad: { width: 3, height: 2 }, padColor: [0, 51, 255], layout: 'nhwc' }, [1, 2, 3, 3], [1, 0, 0, 0, 1, 0, 0, 0.2, 1, 0, 0, 1, 1, 1, 1, 0, 0.2, 1]],
  ])('%j', (options, shape, wanted) => { // biome-ignore format: rows of a table
    const made = values(options);
    expect(made.shape).toEqual(shape);
    for (const [i, value] of wanted.entries()) expect(made.values[i]).toBeCloseTo(value, 6);
  }); // biome-ignore format: rows of a table

  it('is UINT8 as the levels are, or FP16', () => {
    const levels = imageTensor(four, { datatype: 'UINT8', layout: 'nhwc' });
    expect([levels.datatype, [...asUint8(levels)]]).toEqual(['UINT8', [...four.data]]);
    const halves = imageTensor(four, { datatype: 'FP16', imageMean: [0.485], imageStd: [0.229] });
    expect(halves.bytes).toHaveLength(24);
    const exact = values({ imageMean: [0.485], imageStd: [0.229] }).values;
    for (const [i, value] of fromHalves(asUint16(halves)).entries()) expect(value).toBeCloseTo(exact[i]!, 2);
  });

  it('holds several pictures of one size, gray ones beside coloured ones', () => {
    const made = values({ size: { width: 1, height: 1 } }, [
      plainPicture(3, 2, [255, 0, 51]),
      plainPicture(2, 9, [51]),
    ]);
    expect(made).toEqual({
      shape: [2, 3, 1, 1],
      values: [1, 0, 0.2, 0.2, 0.2, 0.2].map((value) => expect.closeTo(value, 6)),
    });
  });

  it('is zeros where the crop lies beyond the picture on all sides but its middle', () => {
    const made = values({ centerCrop: { width: 3, height: 3 } }, plainPicture(1, 1, [255, 255, 255]));
    expect(made.values.slice(0, 9)).toEqual([0, 0, 0, 0, 1, 0, 0, 0, 0]);
  });

  it.each<[string, () => unknown, string]>([
    ['no picture', () => imageTensor([]), 'there is no picture'],
    ['pictures of two sizes', () => imageTensor([four, plainPicture(3, 2, [0])]), 'image 1 becomes 3 x 2, image 0 2 x 2'],
    ['UINT8 with a mean', () => imageTensor(four, { datatype: 'UINT8', imageMean: [0.5] }), 'UINT8 wants rescaleFactor 1'],
    ['a deviation of 0', () => imageTensor(four, { imageStd: [0, 1, 1] }), 'wants numbers above 0'],
    ['two numbers', () => imageTensor(four, { imageMean: [0, 1] }), 'wants 1 or 3 numbers'],
    ['bicubic without antialias', () => imageTensor(four, { antialias: false, resample: 'bicubic' }), 'antialias'],
    ['an unknown option', () => imageTensor(four, { mean: [0] } as object), 'image tensor'],
    ['levels that do not fill the sides', () => imageTensor({ ...four, width: 3 }), 'wants 18 levels, got 12'],
    ['a window beyond the picture', () => resize(four, { width: 4, height: 4, window: { left: 3, top: 0, width: 2, height: 1 } }), 'window'],
  ])('refuses %s', (_what, make, message) => { // biome-ignore format: rows of a table
    expect(make).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }));
  }); // biome-ignore format: rows of a table
});

describe('crop', () => {
  it.each([
    [{ left: 1, top: 0, width: 1, height: 2 }, [0, 255, 0, 255, 255, 255]],
    [{ left: -3, top: 0.6, width: 4, height: 9 }, [0, 0, 255]],
    [{ left: 0, top: 0, width: 2, height: 2 }, [...four.data]],
  ])('cuts %j', (box, data) => {
    expect([...crop(four, box).data]).toEqual(data);
  });

  it.each([
    { left: 2, top: 0, width: 1, height: 1 },
    { left: 0, top: 0, width: 0.4, height: 2 },
    { left: Number.NaN, top: 0, width: 1, height: 1 },
  ])('refuses %j, which holds no pixel', (box) => {
    // biome-ignore format: one row
    expect(() => crop(four, box)).toThrow('holds no pixel of a picture of 2 x 2');
  });

  it('cuts a window out of resizing as cropping afterwards does', () => {
    const noise: Picture = { width: 61, height: 47, channels: 3, data: Uint8Array.from({ length: 61 * 47 * 3 }, (_, i) => (i * 7919) % 251) }; // biome-ignore format: one row
    const window = { left: 5, top: 7, width: 11, height: 9 };
    for (const picture of [noise, toGray(noise)])
      for (const [width, height] of [[30, 20], [100, 30], [61, 20], [20, 47], [90, 80]] as const) // biome-ignore format: one row
        for (const resample of ['nearest', 'bilinear', 'bicubic', 'lanczos'] as const)
          expect(resize(picture, { width, height, resample, window })).toEqual(
            crop(resize(picture, { width, height, resample }), window),
          );
    const plain = { width: 30, height: 20, antialias: false };
    expect(resize(noise, { ...plain, window })).toEqual(crop(resize(noise, plain), window));
  });
});
