import { AppError } from '@perch/contracts';
import { kindOf } from '../json-body.ts';

const base64Text = /^[A-Za-z0-9+/_-]*={0,2}$/;
const wanted = 'wanted the bytes of a picture: base64, a data: URL, or a file of a multipart request';

/**
 * Bytes of a picture as requests hold them: a Buffer, base64 (either alphabet, line ends allowed), or a `data:` URL.
 * `name` stands in messages. Throws `invalid`; `too_large` beyond `maxBytes`, before anything is decoded.
 */
export function imageBytes(value: unknown, name: string, maxBytes: number): Buffer {
  const bytes =
    value instanceof Uint8Array
      ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      : typeof value === 'string'
        ? fromText(value, name, maxBytes)
        : undefined;
  if (!bytes) throw new AppError('invalid', `${name} is ${kindOf(value)}, ${wanted}`);
  if (bytes.length === 0) throw new AppError('invalid', `${name} is empty, ${wanted}`);
  if (bytes.length > maxBytes) throw tooLarge(name, bytes.length, maxBytes);
  return bytes;
}

const tooLarge = (name: string, size: number, most: number) =>
  new AppError('too_large', `${name} has ${size} bytes, at most ${most} are taken (maxBytes)`);

function fromText(text: string, name: string, maxBytes: number): Buffer {
  let from = 0;
  if (text.startsWith('data:')) {
    const comma = text.indexOf(',');
    if (comma < 0 || comma > 256 || !/;base64$/i.test(text.slice(0, comma)))
      throw new AppError('invalid', `${name} is a data: URL that is not base64, wanted data:image/…;base64,…`);
    from = comma + 1;
  } else if (/^https?:/i.test(text))
    throw new AppError('invalid', `${name} is a URL; pictures are not fetched, ${wanted}`);
  const length = text.length - from;
  if (length > 1.4 * maxBytes + 64) throw tooLarge(name, Math.floor(length * 0.75), maxBytes);
  const plain = from > 0 ? text.slice(from) : text;
  // checked whole: Buffer.from drops what is no base64 without a word
  const packed = base64Text.test(plain) ? plain : plain.replace(/[\r\n\t ]/g, '');
  if (packed !== plain && !base64Text.test(packed)) throw new AppError('invalid', `${name} is not base64, ${wanted}`);
  return Buffer.from(packed, 'base64');
}
