import { AppError } from '@perch/contracts/plain';

/** A decoded picture: 8-bit levels, row by row from the top left, `channels` of each pixel side by side (RGB, or gray). */
export interface Picture {
  width: number;
  height: number;
  channels: 1 | 3;
  data: Uint8Array;
}

/** A part of a picture, in its pixels. */
export interface PictureBox {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Checks that the levels fill the sides; throws `invalid`. */
export function checkPicture({ width, height, channels, data }: Picture): void {
  if (data.length !== width * height * channels || data.length === 0)
    throw new AppError(
      'invalid',
      `picture: ${width} x ${height} with ${channels} channels wants ${width * height * channels} levels, got ${data.length}`,
    );
}

/**
 * Cuts a part out, as a picture of its own. Sides are rounded to pixels and cut off at the picture's edge, so that boxes
 * of a detector may be taken as they are; throws `invalid` where nothing is left.
 */
export function crop(picture: Picture, box: PictureBox): Picture {
  const left = Math.max(0, Math.round(box.left));
  const top = Math.max(0, Math.round(box.top));
  const width = Math.min(picture.width, Math.round(box.left + box.width)) - left;
  const height = Math.min(picture.height, Math.round(box.top + box.height)) - top;
  if (!(width > 0 && height > 0))
    throw new AppError(
      'invalid',
      `crop ${box.left},${box.top} ${box.width} x ${box.height} holds no pixel of a picture of ${picture.width} x ${picture.height}`,
    );
  const { channels } = picture;
  const data = new Uint8Array(width * height * channels);
  for (let y = 0; y < height; y++) {
    const from = ((top + y) * picture.width + left) * channels;
    data.set(picture.data.subarray(from, from + width * channels), y * width * channels);
  }
  return { width, height, channels, data };
}

/** Brightness by ITU-R 601 in 16-bit fixed point, as Pillow's `convert('L')` (libImaging/Convert.c, `L24`). */
export function toGray(picture: Picture): Picture {
  if (picture.channels === 1) return picture;
  const data = new Uint8Array(picture.width * picture.height);
  const from = picture.data;
  for (let i = 0, p = 0; i < data.length; i++, p += 3)
    data[i] = (from[p]! * 19_595 + from[p + 1]! * 38_470 + from[p + 2]! * 7_471 + 0x8000) >> 16;
  return { ...picture, channels: 1, data };
}

export function toRgb(picture: Picture): Picture {
  if (picture.channels === 3) return picture;
  const data = new Uint8Array(picture.data.length * 3);
  for (let i = 0; i < picture.data.length; i++) data.fill(picture.data[i]!, 3 * i, 3 * i + 3);
  return { ...picture, channels: 3, data };
}
