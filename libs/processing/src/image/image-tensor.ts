import { AppError, type PreparationOptions, type Tensor } from '@perch/contracts/plain';
import { toHalves } from '../half.ts';
import { checkPreparationOptions } from './check-options.ts';
import { type Geometry, planGeometry } from './geometry.ts';
import { type Picture, toGray, toRgb } from './picture.ts';
import { resize } from './resample.ts';

export type { PreparationOptions } from '@perch/contracts/plain';

type Levels = Float32Array | Uint16Array | Uint8Array;

/** What each of the 256 levels becomes, for each channel of the tensor: one look-up a value. */
interface LevelTable {
  tables: Levels[];
  /** Of each channel, for what is filled. */
  filled: number[];
  order: number[];
  make(length: number): Levels;
}

/** `(level * rescaleFactor - mean) / std`, each step rounded to float32 as NumPy does it. */
function levelValues(factor: number, mean: number, std: number): Float32Array {
  const scale = Math.fround(factor);
  return Float32Array.from({ length: 256 }, (_, level) =>
    Math.fround(Math.fround(Math.fround(level * scale) - Math.fround(mean)) / Math.fround(std)),
  );
}

const of = (list: number[] | undefined, channel: number, otherwise: number) =>
  (list?.length === 1 ? list[0] : list?.[channel]) ?? otherwise;

function inType(values: Float32Array, datatype: PreparationOptions['datatype']): Levels {
  if (datatype === 'FP16') return toHalves(values);
  if (datatype !== 'UINT8') return values;
  return Uint8Array.from(values, (value) => {
    if (value < 0 || value > 255 || !Number.isInteger(value))
      throw new AppError('invalid', 'image tensor: UINT8 wants rescaleFactor 1, no imageMean and no imageStd');
    return value;
  });
}

function levelTable(options: PreparationOptions): LevelTable {
  const { channels = 'rgb', datatype = 'FP32', padColor = 'zero' } = options;
  const order = channels === 'gray' ? [0] : channels === 'bgr' ? [2, 1, 0] : [0, 1, 2];
  const factor = options.rescaleFactor ?? (datatype === 'UINT8' ? 1 : 1 / 255);
  const tables = order.map((_, c) =>
    inType(levelValues(factor, of(options.imageMean, c, 0), of(options.imageStd, c, 1)), datatype),
  );
  const filled = order.map((source, c) => (padColor === 'zero' ? 0 : tables[c]![Math.round(padColor[source]!)]!));
  const make = (length: number) =>
    datatype === 'FP16'
      ? new Uint16Array(length)
      : datatype === 'UINT8'
        ? new Uint8Array(length)
        : new Float32Array(length);
  return { tables, filled, order, make };
}

/** The part of the resized picture that is kept, and where it stands. */
function visible({ resized, left, top, width, height }: Geometry) {
  const x = Math.max(0, left);
  const y = Math.max(0, top);
  const window = {
    left: Math.max(0, -left),
    top: Math.max(0, -top),
    width: Math.min(width, left + resized.width) - x,
    height: Math.min(height, top + resized.height) - y,
  };
  return { x, y, window };
}

/** Steps from one value to the next: of columns, rows and channels. */
const steps = ({ width, height }: Geometry, count: number, layout: PreparationOptions['layout']) =>
  layout === 'nhwc'
    ? { column: count, row: width * count, channel: 1 }
    : { column: 1, row: width, channel: width * height };

type Step = ReturnType<typeof steps>;

function write(picture: Picture, at: { x: number; y: number }, table: LevelTable, to: { values: Levels; step: Step }) {
  const { data, width, height, channels } = picture;
  const { values, step } = to;
  for (const [c, first] of table.order.entries()) {
    const levels = table.tables[c]!;
    for (let row = 0; row < height; row++) {
      let place = (at.y + row) * step.row + at.x * step.column + c * step.channel;
      let pixel = row * width * channels + first;
      for (let i = 0; i < width; i++, place += step.column, pixel += channels) values[place] = levels[data[pixel]!]!;
    }
  }
}

function fill(values: Levels, filled: number[], step: Step): void {
  if (filled.every((value) => value === 0)) return;
  for (let at = 0; at < values.length; at++)
    values[at] = filled[step.channel === 1 ? at % filled.length : Math.floor(at / step.channel)]!;
}

/** Geometry and numbers of one way of preparing pictures, worked out once. */
export interface Preparation {
  plan(sides: { width: number; height: number }): Geometry;
  /** [pictures, channels, height, width], or [pictures, height, width, channels]. Throws `invalid`. */
  tensor(pictures: readonly Picture[]): Tensor;
}

export function prepareImages(options: PreparationOptions): Preparation {
  const table = levelTable(options);
  const count = table.order.length;
  const plan = (sides: { width: number; height: number }) => planGeometry(sides, options);
  return {
    plan,
    tensor(pictures) {
      const first = pictures[0] ? plan(pictures[0]) : undefined;
      if (!first) throw new AppError('invalid', 'image tensor: there is no picture');
      const { width, height } = first;
      const step = steps(first, count, options.layout);
      const each = width * height * count;
      const values = table.make(each * pictures.length);
      for (const [i, picture] of pictures.entries()) {
        const geometry = plan(picture);
        if (geometry.width !== width || geometry.height !== height)
          throw new AppError(
            'invalid',
            `image ${i} becomes ${geometry.width} x ${geometry.height}, image 0 ${width} x ${height}: a batch wants one size`,
          );
        const part = values.subarray(i * each, (i + 1) * each);
        if (options.pad || options.centerCrop || options.fit === 'contain') fill(part, table.filled, step);
        const { x, y, window } = visible(geometry);
        if (window.width <= 0 || window.height <= 0) continue;
        const levels = count === 1 ? toGray(picture) : toRgb(picture);
        write(
          resize(levels, { ...geometry.resized, resample: options.resample, antialias: options.antialias, window }),
          { x, y },
          table,
          { values: part, step },
        );
      }
      const sides = options.layout === 'nhwc' ? [height, width, count] : [count, height, width];
      return {
        datatype: options.datatype ?? 'FP32',
        shape: [pictures.length, ...sides],
        bytes: new Uint8Array(values.buffer),
      };
    },
  };
}

/**
 * One picture, or several of one batch, as a tensor: resized, cropped, filled, rescaled and normalised as `options` say
 * (names of Hugging Face's preprocessor_config.json; see README). FP32 [n, 3, height, width] by default. Throws `invalid`.
 */
export function imageTensor(pictures: Picture | readonly Picture[], options: PreparationOptions = {}): Tensor {
  return prepareImages(checkPreparationOptions(options)).tensor('data' in pictures ? [pictures] : pictures);
}
