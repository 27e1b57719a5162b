import { AppError } from '@perch/contracts/plain';
import { codec } from './codec.ts';
import { checkPicture, type Picture } from './picture.ts';

export interface EncodeImageOptions {
  /** Default jpeg. */
  format?: 'jpeg' | 'png';
  /** Of a JPEG, 1 to 100; default 90. */
  quality?: number;
}

/** A picture as the bytes of a JPEG or PNG, e.g. for `ctx.serve`. Throws `invalid`. */
export async function encodeImage(picture: Picture, options: EncodeImageOptions = {}): Promise<Buffer> {
  checkPicture(picture);
  const { format = 'jpeg', quality = 90 } = options;
  if (!Number.isInteger(quality) || quality < 1 || quality > 100)
    throw new AppError('invalid', `encodeImage: quality is ${quality}, wanted 1 to 100`);
  const bytes = await (await codec()).encode(picture, format === 'png' ? { format } : { format: 'jpeg', quality });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
