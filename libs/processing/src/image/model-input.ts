import {
  AppError,
  type DataType,
  type ImageInputOptions,
  type PreparationOptions,
  type Signature,
  type TensorSpec,
} from '@perch/contracts';
import { type Preparation, prepareImages } from './image-tensor.ts';
import type { PreprocessorOptions } from './preprocessor-config.ts';

/** What the model's signature, the version's preprocessor_config.json and the options leave to do for every request. */
export interface ImagePlan {
  input: TensorSpec;
  preparation: Preparation;
  /** Pictures of one request: from, to. */
  pictures: [number, number];
  /** False: one picture without a batch dimension. */
  batched: boolean;
  /** Transparent pixels, as the options or the file say. */
  alpha: 'flatten' | 'drop';
  /** Large pictures may be reduced while they are decoded: not where single pixels are picked. */
  reduces: boolean;
}

const types: readonly DataType[] = ['FP32', 'FP16', 'UINT8'];
const isChannels = (dim: number | undefined) => dim === 1 || dim === 3;

const refuse = (message: string): never => {
  throw new AppError('invalid', `processing of pictures: ${message}`);
};

/** Whether a tensor may hold pictures: [batch,] channels, height, width, in either order. */
export function takesPictures({ datatype, shape }: TensorSpec): boolean {
  const dims = shape.slice(-3);
  if (!types.includes(datatype) || shape.length < 3 || shape.length > 4) return false;
  return isChannels(dims[0]) || isChannels(dims[2]) || (dims[0] === -1 && dims[2] === -1);
}

function findInput({ inputs }: Signature, name: string | undefined): TensorSpec {
  const names = inputs.map((input) => input.name).join(', ');
  if (name !== undefined) {
    const named = inputs.find((input) => input.name === name) ?? refuse(`the model has no input "${name}"; it has ${names}`); // biome-ignore format: one sentence
    return takesPictures(named)
      ? named
      : refuse(`input "${name}" is ${named.datatype} [${named.shape.join(', ')}], wanted FP32, FP16 or UINT8 with 3 or 4 dimensions and 1 or 3 channels`); // biome-ignore format: one sentence
  }
  const found = inputs.filter(takesPictures);
  if (found.length === 1) return found[0]!;
  return found.length === 0
    ? refuse(`none of the inputs ${names} takes pictures: FP32, FP16 or UINT8 [batch, 3, height, width]`)
    : refuse(`name one of the inputs ${found.map((input) => input.name).join(', ')} in options.input`);
}

interface Sizes {
  layout: 'nchw' | 'nhwc';
  channels: number;
  height: number;
  width: number;
}

function sizesOf(shape: readonly number[], wanted: 'nchw' | 'nhwc' | undefined): Sizes {
  const [first = -1, second = -1, third = -1] = shape.slice(-3);
  const layout = wanted ?? (isChannels(first) || !isChannels(third) ? 'nchw' : 'nhwc');
  return layout === 'nchw'
    ? { layout, channels: first, height: second, width: third }
    : { layout, channels: third, height: first, width: second };
}

const preparationOf = (options: ImageInputOptions): PreparationOptions => {
  const { size, fit, multipleOf, onlyShrink, resample, antialias, centerCrop, cropRounding, pad, padAt, padColor } =
    options;
  const { rescaleFactor, imageMean, imageStd, channels, layout } = options;
  const given = {
    ...{ size, fit, multipleOf, onlyShrink, resample, antialias, centerCrop, cropRounding, pad, padAt, padColor },
    ...{ rescaleFactor, imageMean, imageStd, channels, layout },
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
};

/** Pictures of any sides must come out as the model's fixed ones: tried with a wide and a tall one. */
function checkSides(preparation: Preparation, { height, width }: Sizes, name: string): void {
  for (const sides of [
    { width: 640, height: 480 },
    { width: 480, height: 640 },
  ]) {
    // biome-ignore format: short
    const made = preparation.plan(sides);
    if ((height > 0 && made.height !== height) || (width > 0 && made.width !== width))
      refuse(
        `input "${name}" is ${width > 0 ? width : 'any'} x ${height > 0 ? height : 'any'} pixels, but a picture of ` +
          `${sides.width} x ${sides.height} would become ${made.width} x ${made.height}; set size, fit, centerCrop or pad`,
      );
  }
}

/**
 * Checks that the model takes pictures and that the options make them of its sides. `config`: what the version's
 * preprocessor_config.json says; the options come before it. Throws `invalid` naming the tensor at fault.
 */
export function planImages(
  { signature, maxBatchSize }: { signature: Signature; maxBatchSize: number },
  options: ImageInputOptions,
  config: PreprocessorOptions = {},
): ImagePlan {
  const input = findInput(signature, options.input);
  const { alpha, ...read } = config;
  const own = preparationOf(options);
  const replaced = [
    ...(own.size || own.centerCrop ? ['size', 'centerCrop', 'pad', 'fit'] : []),
    ...(input.datatype === 'UINT8' ? ['rescaleFactor', 'imageMean', 'imageStd'] : []),
  ];
  const kept = Object.fromEntries(Object.entries(read).filter(([word]) => !replaced.includes(word)));
  const sizes = sizesOf(input.shape, own.layout);
  const wish: PreparationOptions = {
    ...(sizes.height > 0 && sizes.width > 0 && !read.size && { size: { height: sizes.height, width: sizes.width } }),
    ...(sizes.channels === 1 && { channels: 'gray' as const }),
    ...kept,
    ...own,
    layout: sizes.layout,
    datatype: input.datatype as 'FP32' | 'FP16' | 'UINT8',
  };
  const count = wish.channels === 'gray' ? 1 : 3;
  if (sizes.channels > 0 && sizes.channels !== count)
    refuse(`input "${input.name}" has ${sizes.channels} channels, but options.channels is ${wish.channels ?? 'rgb'}`);
  const preparation = prepareImages(wish);
  checkSides(preparation, sizes, input.name);
  const batched = input.shape.length === 4;
  const fixed = batched ? input.shape[0]! : 1;
  return {
    input,
    preparation,
    pictures: fixed > 0 ? [fixed, fixed] : [1, maxBatchSize || 64],
    batched,
    alpha: options.alpha ?? alpha ?? 'flatten',
    reduces: wish.antialias !== false && wish.resample !== 'nearest',
  };
}
