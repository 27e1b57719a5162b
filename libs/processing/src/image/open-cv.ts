import type { Picture, PictureBox } from './picture.ts';

/** INTER_NEAREST: the pixel at floor(place * factor), whatever the middle (modules/imgproc/src/resize.cpp). */
export const openCvNearest = (size: number, resized: number): Int32Array =>
  Int32Array.from({ length: resized }, (_, i) => Math.min(size - 1, Math.floor((i * size) / resized)));

interface Pair {
  first: Int32Array;
  second: Int32Array;
  /** Of the second pixel, in 2048ths. */
  share: Int32Array;
}

/** The two pixels beside each place and the share of the second; beyond the edge, the edge. */
function pairs(size: number, resized: number, [from, to]: [number, number]): Pair {
  const pair: Pair = {
    first: new Int32Array(to - from),
    second: new Int32Array(to - from),
    share: new Int32Array(to - from),
  };
  for (let i = 0; i < to - from; i++) {
    const at = Math.fround(((i + from + 0.5) * size) / resized - 0.5);
    const low = Math.floor(at);
    const share = low < 0 || low >= size - 1 ? 0 : at - low;
    pair.first[i] = Math.min(size - 1, Math.max(0, low));
    pair.second[i] = Math.min(size - 1, pair.first[i]! + 1);
    pair.share[i] = Math.round(share * 2048);
  }
  return pair;
}

/**
 * INTER_LINEAR of OpenCV on 8-bit levels: two pixels a side whatever the factor, weights in 11-bit fixed point
 * (modules/imgproc/src/resize.cpp, `HResizeLinear`, `VResizeLinear`).
 */
export function openCvLinear(from: Picture, size: { width: number; height: number }, window: PictureBox): Picture {
  const { left, top, width, height } = window;
  const { channels } = from;
  const x = pairs(from.width, size.width, [left, left + width]);
  const y = pairs(from.height, size.height, [top, top + height]);
  const data = new Uint8Array(width * height * channels);
  const line = (row: number): Int32Array => {
    const out = new Int32Array(width * channels);
    const start = row * from.width * channels;
    for (let i = 0; i < width; i++)
      for (let c = 0; c < channels; c++)
        out[i * channels + c] =
          from.data[start + x.first[i]! * channels + c]! * (2048 - x.share[i]!) +
          from.data[start + x.second[i]! * channels + c]! * x.share[i]!;
    return out;
  };
  const lines = new Map<number, Int32Array>();
  const lineOf = (row: number): Int32Array => {
    let found = lines.get(row);
    if (!found) {
      if (lines.size > 4) lines.clear();
      found = line(row);
      lines.set(row, found);
    }
    return found;
  };
  for (let i = 0, to = 0; i < height; i++) {
    const upper = lineOf(y.first[i]!);
    const lower = lineOf(y.second[i]!);
    const share = y.share[i]!;
    for (let k = 0; k < upper.length; k++, to++)
      data[to] = ((((2048 - share) * (upper[k]! >> 4)) >> 16) + ((share * (lower[k]! >> 4)) >> 16) + 2) >> 2;
  }
  return { width, height, channels, data };
}
