import { AppError, type ImageBox, type ImageSize, type PreparationOptions } from '@perch/contracts/plain';

export interface Sides {
  width: number;
  height: number;
}

/** What becomes of a picture's sides: resized to `resized`, laid at `left`, `top` (below 0: cut) into `width` x `height`. */
export interface Geometry extends Sides {
  resized: Sides;
  left: number;
  top: number;
}

type Wish = Pick<
  PreparationOptions,
  'size' | 'fit' | 'multipleOf' | 'onlyShrink' | 'centerCrop' | 'cropRounding' | 'pad' | 'padAt'
>;

/** To the nearest, halves to the even one: Python's `round`. */
export function roundHalfEven(value: number): number {
  const low = Math.floor(value);
  const rest = value - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low;
}

/**
 * Shortest edge to `shortestEdge`, the other one cut to whole pixels as torchvision's and Hugging Face's
 * `get_resize_output_image_size` do it. Where the longest would pass `longestEdge`: DETR's `get_size_with_aspect_ratio`.
 */
function byShortest({ width, height }: Sides, shortest: number, longest: number | undefined): Sides {
  const [least, most] = [Math.min(width, height), Math.max(width, height)];
  let edge = shortest;
  let exact: number | undefined;
  if (longest !== undefined && (most / least) * shortest > longest) {
    exact = (longest * least) / most;
    edge = roundHalfEven(exact);
  }
  const long = Math.trunc(((exact ?? edge) * most) / least);
  return width <= height ? { width: edge, height: long } : { width: long, height: edge };
}

function byLongest({ width, height }: Sides, longest: number): Sides {
  const factor = longest / Math.max(width, height);
  return { width: roundHalfEven(width * factor), height: roundHalfEven(height * factor) };
}

/** Text lines (PP-OCR): one height, the width by the proportions, rounded up. */
function byHeight({ width, height }: Sides, wanted: number, maxWidth = Number.POSITIVE_INFINITY): Sides {
  return { width: Math.min(maxWidth, Math.ceil((wanted * width) / height)), height: wanted };
}

function byBoth({ width, height }: Sides, wanted: ImageBox, fit: Wish['fit']): Sides {
  if (fit === undefined || fit === 'stretch') return wanted;
  const wide = wanted.width * height >= wanted.height * width;
  if (fit === 'cover')
    return wide
      ? { width: wanted.width, height: Math.max(wanted.height, Math.trunc((wanted.width * height) / width)) }
      : { width: Math.max(wanted.width, Math.trunc((wanted.height * width) / height)), height: wanted.height };
  return wide
    ? { width: roundHalfEven((wanted.height * width) / height), height: wanted.height }
    : { width: wanted.width, height: roundHalfEven((wanted.width * height) / width) };
}

function resized(sides: Sides, size: ImageSize | undefined, wish: Wish): Sides {
  if (!size) return sides;
  if ('width' in size) return byBoth(sides, size, wish.fit);
  if ('height' in size) return byHeight(sides, size.height, size.maxWidth);
  return 'shortestEdge' in size
    ? byShortest(sides, size.shortestEdge, size.longestEdge)
    : byLongest(sides, size.longestEdge);
}

/** Of a resized picture: 150 MB of levels, 600 MB as FP32. */
const mostPixels = 50_000_000;

const toMultiple = (side: number, of: number) => Math.max(of, roundHalfEven(side / of) * of);

/** Lays what is there into another box: `share` of the difference stands ahead of it. */
function into(from: Geometry, box: ImageBox, share: (difference: number) => number): Geometry {
  return {
    resized: from.resized,
    ...box,
    left: from.left + share(box.width - from.width),
    top: from.top + share(box.height - from.height),
  };
}

const half = (difference: number) => Math.ceil(difference / 2) + 0;
const halfEven = (difference: number) =>
  difference > 0 ? Math.floor(difference / 2) : 0 - roundHalfEven(-difference / 2);
const middleDown = (difference: number) => Math.floor(difference / 2);

/**
 * What becomes of a picture of these sides. `half` is how Hugging Face's `center_crop` rounds, `halfEven` how
 * torchvision's does. Throws `invalid` where a side would be beyond 16,384 or below one pixel.
 */
export function planGeometry(sides: Sides, wish: Wish): Geometry {
  let to = resized(sides, wish.size, wish);
  if (wish.onlyShrink && to.width * to.height > sides.width * sides.height) to = sides;
  to = { width: Math.max(1, to.width), height: Math.max(1, to.height) };
  const step = wish.multipleOf;
  if (step) to = { width: toMultiple(to.width, step), height: toMultiple(to.height, step) };
  if (to.width > 16_384 || to.height > 16_384 || to.width * to.height > mostPixels)
    throw new AppError(
      'invalid',
      `image: ${sides.width} x ${sides.height} would become ${to.width} x ${to.height}, at most 16384 a side and ${mostPixels} pixels`,
    );
  let plan: Geometry = { resized: to, ...to, left: 0, top: 0 };
  const both = wish.size && 'width' in wish.size ? wish.size : undefined;
  const cropped = wish.cropRounding === 'even' ? halfEven : half;
  if (both && wish.fit === 'cover') plan = into(plan, both, cropped);
  if (both && wish.fit === 'contain') plan = into(plan, both, wish.padAt === 'start' ? () => 0 : middleDown);
  if (wish.centerCrop) plan = into(plan, wish.centerCrop, cropped);
  if (wish.pad) {
    const box = { width: Math.max(plan.width, wish.pad.width), height: Math.max(plan.height, wish.pad.height) };
    plan = into(plan, box, wish.padAt === 'center' ? middleDown : () => 0);
  }
  return plan;
}

/** How much larger than wanted a large picture stays when it is reduced while it is decoded: Pillow's `reducing_gap`. */
const gap = 3;

/**
 * Sides that a picture may be brought to by another filter ahead of its own resizing, close enough to it (Pillow:
 * "almost indistinguishable"); absent: its resizing would not be left enough to do.
 */
export function reducedSides(sides: Sides, { resized }: Geometry): Sides | undefined {
  const width = Math.min(sides.width, gap * resized.width);
  const height = Math.min(sides.height, gap * resized.height);
  return width < sides.width || height < sides.height ? { width, height } : undefined;
}
