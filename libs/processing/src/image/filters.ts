import type { ImageFilter } from '@perch/contracts/plain';

type Kernel = { support: number; weight: (x: number) => number };
const sinc = (x: number) => (x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI));

/** Pillow's filters with their half widths in source pixels (libImaging/Resample.c). Bicubic has a = -0.5. */
const kernels: Record<Exclude<ImageFilter, 'nearest'>, Kernel> = {
  box: { support: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: {
    support: 1,
    weight: (x) => (Math.abs(x) >= 1 ? 0 : x === 0 ? 1 : sinc(x) * (0.54 + 0.46 * Math.cos(x * Math.PI))),
  },
  bicubic: {
    support: 2,
    weight(signed) {
      const a = -0.5;
      const x = Math.abs(signed);
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
    },
  },
  lanczos: { support: 3, weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

/** For each place of one side: the first source pixel, how many, and their weights in `bits`-bit fixed point. */
export interface Weights {
  first: Int32Array;
  count: Int32Array;
  values: Int32Array;
  /** Weights of one place: those of place i begin at i * stride. */
  stride: number;
}

export const weightBits = 22;

/**
 * Weights for the places `from` to `to` of a side that goes from `size` to `resized` pixels: `precompute_coeffs` and
 * `normalize_coeffs_8bpc` of Pillow's libImaging/Resample.c. The filter is as wide as the factor (antialias), its weights
 * add to 1 and are rounded away from zero to 22 bits.
 */
export function filterWeights(
  filter: Exclude<ImageFilter, 'nearest'>,
  [size, resized]: [number, number],
  [from, to]: [number, number],
): Weights {
  const { support: half, weight } = kernels[filter];
  const scale = size / resized;
  const widening = Math.max(1, scale);
  const support = half * widening;
  const stride = Math.ceil(support) * 2 + 1;
  const first = new Int32Array(to - from);
  const count = new Int32Array(to - from);
  const values = new Int32Array((to - from) * stride);
  const row = new Float64Array(stride);
  for (let place = from; place < to; place++) {
    const center = (place + 0.5) * scale;
    const start = Math.max(0, Math.trunc(center - support + 0.5));
    const many = Math.min(size, Math.trunc(center + support + 0.5)) - start;
    let sum = 0;
    for (let i = 0; i < many; i++) {
      row[i] = weight((i + start - center + 0.5) * (1 / widening));
      sum += row[i]!;
    }
    for (let i = 0; i < many; i++) {
      const share = (sum === 0 ? row[i]! : row[i]! / sum) * (1 << weightBits);
      values[(place - from) * stride + i] = Math.trunc(share < 0 ? share - 0.5 : share + 0.5);
    }
    first[place - from] = start;
    count[place - from] = many;
  }
  return { first, count, values, stride };
}

/**
 * Source pixel of each place: the middle of the place, as Pillow's `ImagingScaleAffine` (libImaging/Geometry.c) walks
 * to it step by step; the same sums, so the same rounding.
 */
export function nearestPlaces(size: number, resized: number): Int32Array {
  const step = size / resized;
  const places = new Int32Array(resized);
  let at = step * 0.5;
  for (let i = 0; i < resized; i++) {
    places[i] = Math.min(size - 1, Math.trunc(at));
    at += step;
  }
  return places;
}
