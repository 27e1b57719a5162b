/** What Pillow, OpenCV and Hugging Face's image processors make of the same files: reference/images/generate.py. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ImageFilter } from '@perch/contracts/plain';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from '../call.fake.ts';
import { loadProcessing } from '../loaded-processing.ts';
import { asFloat32, asUint8 } from '../tensor.ts';
import { decodeImage } from './decode.ts';
import { imageTensor, type PreparationOptions } from './image-tensor.ts';
import { toGray } from './picture.ts';
import { readPreprocessorConfig } from './preprocessor-config.ts';
import { resize } from './resample.ts';

const folder = new URL('../../reference/images/', import.meta.url);
const read = (name: string) => readFileSync(fileURLToPath(new URL(name, folder)));
const json = <T>(name: string) => JSON.parse(String(read(name))) as T;
const picture = (name: string) => decodeImage(read(`pictures/${name}`));

interface Distance {
  most: number;
  mean: number;
}
function distance(ours: ArrayLike<number>, theirs: ArrayLike<number>): Distance {
  expect(ours.length).toBe(theirs.length);
  let most = 0;
  let sum = 0;
  for (let i = 0; i < ours.length; i++) {
    const difference = Math.abs(ours[i]! - theirs[i]!);
    most = Math.max(most, difference);
    sum += difference;
  }
  return { most, mean: sum / ours.length };
}
const exact: Distance = { most: 0, mean: 0 };

describe('decoding', () => {
  const decoded = json<Record<string, { width: number; height: number; levels: string }>>('decoded.json');
  const tolerances: Record<string, Distance> = { 'alpha.png': { most: 1, mean: 0.5 } };

  it.each(Object.entries(decoded))('%s as Pillow does', async (name, { width, height, levels }) => {
    const { data, ...sides } = await picture(name);
    expect(sides).toEqual({ width, height, channels: 3 });
    const ours = Uint8Array.from({ length: 256 }, (_, i) => data[(i * 7919) % data.length]!);
    const { most, mean } = distance(ours, Buffer.from(levels, 'base64'));
    const tolerance = tolerances[name] ?? exact;
    expect(most).toBeLessThanOrEqual(tolerance.most);
    expect(mean).toBeLessThanOrEqual(tolerance.mean);
  });
});

interface Resized {
  picture: string;
  width: number;
  height: number;
  resample: ImageFilter;
  antialias?: boolean;
  levels: string;
}

describe('resizing', () => {
  const cases = json<Resized[]>('resized.json');
  it.each(cases)('$picture to $width x $height by $resample', async ({ picture: name, levels, ...resizing }) => {
    const source = await picture(name);
    const { data } = resize(name.startsWith('gray') ? toGray(source) : source, resizing);
    const { most } = distance(data, Buffer.from(levels, 'base64'));
    expect(most).toBeLessThanOrEqual(resizing.antialias === false && resizing.resample === 'bilinear' ? 1 : 0);
  });
});

interface Recipe {
  huggingFace?: Record<string, unknown>;
  options?: PreparationOptions;
}
interface Expected {
  recipe: string;
  picture: string;
  shape: number[];
  mean: number;
  values: string;
}

describe('tensors', () => {
  const { recipes, tensors } = json<{ recipes: Record<string, Recipe>; tensors: Expected[] }>('tensors.json');

  it.each(tensors)('$recipe of $picture', async ({ recipe, picture: name, shape, mean, values }) => {
    const { huggingFace, options } = recipes[recipe]!;
    const { alpha: _, ...wish } = huggingFace ? readPreprocessorConfig(huggingFace) : { ...options, alpha: '' };
    const tensor = imageTensor(await picture(name), wish as PreparationOptions);
    expect(tensor.shape).toEqual([1, ...shape]);
    const all: ArrayLike<number> = tensor.datatype === 'UINT8' ? asUint8(tensor) : asFloat32(tensor);
    const ours = Float32Array.from({ length: 512 }, (_, i) => all[(i * 104729) % all.length]!);
    const packed = Buffer.from(values, 'base64');
    const theirs = Float32Array.from({ length: 512 }, (_, i) => packed.readFloatLE(4 * i));
    const { most, mean: meanDistance } = distance(ours, theirs);
    expect(most).toBeLessThanOrEqual(5e-6);
    expect(meanDistance).toBeLessThanOrEqual(1e-6);
    expect(Array.from(all).reduce((sum, value) => sum + value, 0) / all.length).toBeCloseTo(mean, 5);
  });
});

describe('a large picture', () => {
  it.each(['photo.jpg', 'turned.jpg', 'wide.png'])(
    '%s is close to exact where it is reduced in decoding',
    async (name) => {
      const signature = {
        inputs: [{ name: 'x', datatype: 'FP32' as const, shape: [-1, 3, 16, 24] }],
        outputs: [{ name: 'y', datatype: 'FP32' as const, shape: [-1, 2] }],
      };
      const levels = async (exactPixels: number) => {
        const options = { rescaleFactor: 1, exactPixels };
        const setup = { builtin: 'image-embedding', options, files: filesOf({}), signature, maxBatchSize: 1 };
        const { inputs } = await (await loadProcessing(setup)).preprocess(
          read(`pictures/${name}`),
          'image/x',
          quietCall,
        );
        return asFloat32(inputs['x']!);
      };
      const { most, mean } = distance(await levels(1), await levels(1_000_000));
      expect(most).toBeLessThanOrEqual(32); // one line of photo.jpg; the others stay below 4
      expect(mean).toBeLessThanOrEqual(1.25);
      expect(most).toBeGreaterThan(0);
    },
  );
});
