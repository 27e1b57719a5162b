import { AppError } from '@perch/contracts/plain';
import { bytesOf } from '../body.ts';

/**
 * Bytes of a picture as requests hold them: a Buffer, base64, a `data:` URL, `{"b64": "…"}`. `name` stands in messages.
 * Throws `invalid`; `too_large` beyond `maxBytes`, before base64 is read.
 */
export function imageBytes(value: unknown, name: string, maxBytes: number): Buffer {
  if (typeof value === 'string') {
    if (/^(https?|file|s3):/i.test(value))
      throw new AppError(
        'invalid',
        `${name} is an address; pictures are not fetched, send their bytes (base64, or a file)`,
      );
    if (value.length > 1.4 * maxBytes + 512) throw tooLarge(name, Math.floor(value.length * 0.75), maxBytes);
  }
  const bytes = bytesOf(value, name);
  if (bytes.length === 0) throw new AppError('invalid', `${name} is empty, wanted a JPEG, PNG or WebP`);
  if (bytes.length > maxBytes) throw tooLarge(name, bytes.length, maxBytes);
  return bytes;
}

const tooLarge = (name: string, size: number, most: number) =>
  new AppError('too_large', `${name} has ${size} bytes, at most ${most} are taken (maxBytes)`);
