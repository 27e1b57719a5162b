import type { DecodeWish, Encoding, ImageCodec } from './codec.ts';
import type { Picture } from './picture.ts';

type Sharp = typeof import('sharp').default;

/** `cmyk2rgb` of Pillow's libImaging/Convert.c: no profile, a channel is what its ink and black leave. */
function fromInks(inks: Uint8Array): Uint8Array {
  const data = new Uint8Array((inks.length / 4) * 3);
  for (let from = 0, to = 0; from < inks.length; from += 4) {
    const light = 255 - inks[from + 3]!;
    for (let c = 0; c < 3; c++) {
      const product = inks[from + c]! * light + 128;
      data[to++] = Math.max(0, light - (((product >> 8) + product) >> 8));
    }
  }
  return data;
}

async function decode(sharp: Sharp, bytes: Uint8Array, wish: DecodeWish): Promise<Picture> {
  const image = sharp(bytes, {
    failOn: 'error',
    limitInputPixels: wish.maxPixels,
    ignoreIcc: true, // as Pillow: models saw levels, not colours
    autoOrient: wish.orient,
  }).timeout({ seconds: wish.decodeSeconds });
  if (wish.reduce) {
    const turned = wish.orient && ((await image.metadata()).orientation ?? 1) >= 5;
    image.resize({ ...wish.reduce[turned ? 'turned' : 'plain'], fit: 'fill', kernel: 'linear' });
  }
  if (wish.cmyk) {
    const inks = await image
      .pipelineColourspace('cmyk')
      .toColourspace('cmyk')
      .raw()
      .toBuffer({ resolveWithObject: true });
    return { width: inks.info.width, height: inks.info.height, channels: 3, data: fromInks(inks.data) };
  }
  const [r, g, b] = wish.background;
  const opaque = wish.alpha === 'flatten' ? image.flatten({ background: { r, g, b } }) : image.removeAlpha();
  const levels = opaque.toColourspace('srgb').raw({ depth: 'uchar' });
  const { data, info } = await levels.toBuffer({ resolveWithObject: true });
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
    decode: (bytes, wish) => decode(sharp, bytes, wish),
    encode: (picture, encoding) => encode(sharp, picture, encoding),
  };
}
