import type { DecodeOptions } from '@perch/contracts';
import type { Encoding, ImageCodec } from './codec.ts';
import type { Picture } from './picture.ts';

type Sharp = typeof import('sharp').default;

async function decode(sharp: Sharp, bytes: Uint8Array, limits: Required<DecodeOptions>): Promise<Picture> {
  const [r, g, b] = limits.background;
  let image = sharp(bytes, {
    failOn: 'error',
    limitInputPixels: limits.maxPixels,
    ignoreIcc: true, // as Pillow: models saw levels, not colours
    autoOrient: limits.orient,
  }).timeout({ seconds: limits.decodeSeconds });
  image = limits.alpha === 'flatten' ? image.flatten({ background: { r, g, b } }) : image.removeAlpha();
  const { data, info } = await image
    .toColourspace('srgb')
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, channels: info.channels as 1 | 3, data };
}

async function encode(sharp: Sharp, picture: Picture, encoding: Encoding): Promise<Uint8Array> {
  const { width, height, channels, data } = picture;
  const image = sharp(data, { raw: { width, height, channels } });
  return encoding.format === 'png' ? image.png().toBuffer() : image.jpeg({ quality: encoding.quality }).toBuffer();
}

/** sharp with one thread a picture and no cache: pictures side by side keep the cores busy, and memory stays bounded. */
export async function sharpCodec(): Promise<ImageCodec> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return {
    decode: (bytes, limits) => decode(sharp, bytes, limits),
    encode: (picture, encoding) => encode(sharp, picture, encoding),
  };
}
