import { AppError, type ImageFilter } from '@perch/contracts/plain';
import { filterWeights, nearestPlaces, type Weights, weightBits } from './filters.ts';
import { openCvLinear, openCvNearest } from './open-cv.ts';
import { checkPicture, type Picture, type PictureBox } from './picture.ts';

export interface Resizing {
  width: number;
  height: number;
  /** Default bilinear. */
  resample?: ImageFilter;
  /** Default true: as Pillow. False: as OpenCV's INTER_LINEAR and INTER_NEAREST. */
  antialias?: boolean;
  /** Only this part of the resized picture is worked out; the same numbers as cutting it afterwards. */
  window?: PictureBox;
}

const middle = 1 << (weightBits - 1);

/** Cuts off below 0 and above 255 when it is written to. */
const levels = (count: number) => new Uint8ClampedArray(count);
const plain = (data: Uint8ClampedArray) => new Uint8Array(data.buffer);

/** One row at a time from `rows[0]` to `rows[1]`, each into as many places as there are weights. */
function acrossRgb(from: Picture, { first, count, values, stride }: Weights, rows: [number, number]): Picture {
  const width = first.length;
  const source = from.data;
  const data = levels(width * (rows[1] - rows[0]) * 3);
  for (let y = rows[0], to = 0; y < rows[1]; y++)
    for (let x = 0; x < width; x++, to += 3) {
      let red = middle;
      let green = middle;
      let blue = middle;
      const end = x * stride + count[x]!;
      for (let k = x * stride, at = (y * from.width + first[x]!) * 3; k < end; k++, at += 3) {
        const weight = values[k]!;
        red = (red + Math.imul(source[at]!, weight)) | 0;
        green = (green + Math.imul(source[at + 1]!, weight)) | 0;
        blue = (blue + Math.imul(source[at + 2]!, weight)) | 0;
      }
      data[to] = red >> weightBits;
      data[to + 1] = green >> weightBits;
      data[to + 2] = blue >> weightBits;
    }
  return { width, height: rows[1] - rows[0], channels: 3, data: plain(data) };
}

function acrossGray(from: Picture, { first, count, values, stride }: Weights, rows: [number, number]): Picture {
  const width = first.length;
  const source = from.data;
  const data = levels(width * (rows[1] - rows[0]));
  for (let y = rows[0], to = 0; y < rows[1]; y++)
    for (let x = 0; x < width; x++, to++) {
      let sum = middle;
      const end = x * stride + count[x]!;
      for (let k = x * stride, at = y * from.width + first[x]!; k < end; k++, at++)
        sum = (sum + Math.imul(source[at]!, values[k]!)) | 0;
      data[to] = sum >> weightBits;
    }
  return { width, height: rows[1] - rows[0], channels: 1, data: plain(data) };
}

/** Four levels of a row side by side: they share their weights. `skipped`: rows of the source that are not in `from`. */
function down(from: Picture, { first, count, values, stride }: Weights, skipped: number): Picture {
  const length = from.width * from.channels;
  const height = first.length;
  const source = from.data;
  const data = levels(height * length);
  const four = length - (length % 4);
  for (let y = 0, to = 0; y < height; y++) {
    const begin = y * stride;
    const end = begin + count[y]!;
    const top = (first[y]! - skipped) * length;
    let i = 0;
    for (; i < four; i += 4, to += 4) {
      let a = middle;
      let b = middle;
      let c = middle;
      let d = middle;
      for (let k = begin, at = top + i; k < end; k++, at += length) {
        const weight = values[k]!;
        a = (a + Math.imul(source[at]!, weight)) | 0;
        b = (b + Math.imul(source[at + 1]!, weight)) | 0;
        c = (c + Math.imul(source[at + 2]!, weight)) | 0;
        d = (d + Math.imul(source[at + 3]!, weight)) | 0;
      }
      data[to] = a >> weightBits;
      data[to + 1] = b >> weightBits;
      data[to + 2] = c >> weightBits;
      data[to + 3] = d >> weightBits;
    }
    for (; i < length; i++, to++) {
      let sum = middle;
      for (let k = begin, at = top + i; k < end; k++, at += length)
        sum = (sum + Math.imul(source[at]!, values[k]!)) | 0;
      data[to] = sum >> weightBits;
    }
  }
  return { ...from, height, data: plain(data) };
}

function nearest(from: Picture, columns: Int32Array, rows: Int32Array): Picture {
  const { channels } = from;
  const data = new Uint8Array(columns.length * rows.length * channels);
  let to = 0;
  for (const row of rows)
    for (const column of columns)
      for (let c = 0, at = (row * from.width + column) * channels; c < channels; c++) data[to++] = from.data[at + c]!;
  return { width: columns.length, height: rows.length, channels, data };
}

/**
 * Two passes, each rounded to 8 bits; a side that keeps its length is not touched. Across first, but down first where
 * the height shrinks by more than twice what the width does (`ImagingResampleInner`, since Pillow 12; before, always
 * across first, which differs by a level or two in such pictures).
 */
function separable(from: Picture, filter: Exclude<ImageFilter, 'nearest'>, size: Sides, window: PictureBox): Picture {
  const { left, top, width, height } = window;
  const shrinks = from.height - size.height;
  const downFirst = shrinks > 0 && shrinks > 2 * (from.width - size.width);
  const columns =
    size.width === from.width
      ? identity(left, width)
      : filterWeights(filter, [from.width, size.width], [left, left + width]);
  const across = (picture: Picture, rows: [number, number]) =>
    (picture.channels === 3 ? acrossRgb : acrossGray)(picture, columns, rows);
  if (size.height === from.height) return across(from, [top, top + height]);
  const rows = filterWeights(filter, [from.height, size.height], [top, top + height]);
  if (downFirst) return across(down(from, rows, 0), [0, height]);
  const used: [number, number] = [rows.first[0]!, rows.first[height - 1]! + rows.count[height - 1]!];
  return down(across(from, used), rows, used[0]);
}

const identity = (from: number, count: number): Weights => ({
  first: Int32Array.from({ length: count }, (_, i) => from + i),
  count: new Int32Array(count).fill(1),
  values: new Int32Array(count).fill(1 << weightBits),
  stride: 1,
});

type Sides = { width: number; height: number };

/**
 * Resizes a picture: level for level what Pillow's `Image.resize` answers, or with `antialias: false` what OpenCV's
 * `resize` does (linear: within one level, since its vector code rounds in another place). Throws `invalid`.
 */
export function resize(picture: Picture, resizing: Resizing): Picture {
  checkPicture(picture);
  const { width, height, resample = 'bilinear', antialias = true } = resizing;
  const window = resizing.window ?? { left: 0, top: 0, width, height };
  const { left, top } = window;
  const inside = left >= 0 && top >= 0 && left + window.width <= width && top + window.height <= height;
  if (!inside || !(window.width > 0 && window.height > 0))
    throw new AppError('invalid', `resize to ${width} x ${height}: the window lies beyond it`);
  const columns = (places: Int32Array) => places.subarray(left, left + window.width);
  const rows = (places: Int32Array) => places.subarray(top, top + window.height);
  if (resample === 'nearest') {
    const places = antialias ? nearestPlaces : openCvNearest;
    return nearest(picture, columns(places(picture.width, width)), rows(places(picture.height, height)));
  }
  if (antialias) return separable(picture, resample, { width, height }, window);
  if (resample !== 'bilinear')
    throw new AppError('invalid', `resize: without antialias there are bilinear and nearest, not ${resample}`);
  return openCvLinear(picture, { width, height }, window);
}
