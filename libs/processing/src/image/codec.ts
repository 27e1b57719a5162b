import { AppError, type DecodeOptions } from '@perch/contracts/plain';
import type { Sides } from './geometry.ts';
import type { Picture } from './picture.ts';

/** Options, and what the header said. */
export type DecodeWish = Required<DecodeOptions> & { cmyk: boolean; reduce?: Reduction };
/** Sides to bring a large picture to while it is decoded: where EXIF leaves it as it is, and where it is turned by a quarter. */
export interface Reduction {
  plain: Sides;
  turned: Sides;
}
export type Encoding = { format: 'jpeg'; quality: number } | { format: 'png' };

/** What turns files into levels and back. */
export interface ImageCodec {
  decode(bytes: Uint8Array, wish: DecodeWish): Promise<Picture>;
  encode(picture: Picture, encoding: Encoding): Promise<Uint8Array>;
}

/** Where a host leaves another codec than sharp, for code that cannot load native libraries; specs leave a slow one. */
export const hostCodec = Symbol.for('perch.imageCodec');
type Host = { [hostCodec]?: ImageCodec };

let own: Promise<ImageCodec> | undefined;

/** The host's, else sharp; loaded at the first picture. Throws `unavailable` where there is neither. */
export async function codec(): Promise<ImageCodec> {
  const given = (globalThis as Host)[hostCodec];
  if (given) return given;
  own ??= import('./sharp-codec.ts').then(({ sharpCodec }) => sharpCodec());
  try {
    return await own;
  } catch (error) {
    own = undefined;
    throw new AppError('unavailable', 'pictures cannot be decoded here: sharp could not be loaded', { cause: error });
  }
}
