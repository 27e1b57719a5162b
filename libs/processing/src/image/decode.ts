import { AppError, type DecodeOptions } from '@perch/contracts/plain';
import { checkDecodeOptions } from './check-options.ts';
import { codec, type DecodeWish, type Reduction } from './codec.ts';
import type { Sides } from './geometry.ts';
import { imageBytes } from './image-bytes.ts';
import { type ImageHeader, readImageHeader } from './image-header.ts';
import type { Picture } from './picture.ts';

export type { DecodeOptions } from '@perch/contracts/plain';

type Limits = Required<DecodeOptions>;

/** Refuses by the header what is beyond the limits. */
function checkHeader({ format, width, height, animated }: ImageHeader, name: string, limits: Limits): void {
  if (width * height > limits.maxPixels)
    throw new AppError(
      'too_large',
      `${name} has ${width} x ${height} pixels, at most ${limits.maxPixels} in all are taken (maxPixels)`,
    );
  if (animated && limits.animated === 'refuse')
    throw new AppError(
      'invalid',
      `${name} is an animated ${format === 'webp' ? 'WebP' : 'PNG'}, wanted one picture; animated: first takes its first frame`,
    );
}

/** Pixels that are decoded at once: two pictures at the default limit. One beyond it is decoded alone. */
const pixelsAtOnce = 80_000_000;
let pixelsUnderWay = 0;
const waiting: { pixels: number; go: () => void }[] = [];

function admit(pixels: number): Promise<void> | undefined {
  if (waiting.length === 0 && (pixelsUnderWay === 0 || pixelsUnderWay + pixels <= pixelsAtOnce)) {
    pixelsUnderWay += pixels;
    return undefined;
  }
  return new Promise((go) => waiting.push({ pixels, go }));
}

function release(pixels: number): void {
  pixelsUnderWay -= pixels;
  for (let next = waiting[0]; next; next = waiting[0]) {
    if (pixelsUnderWay > 0 && pixelsUnderWay + next.pixels > pixelsAtOnce) return;
    waiting.shift();
    pixelsUnderWay += next.pixels;
    next.go();
  }
}

export interface Reducing {
  /** A picture of so many pixels or fewer is decoded as it is. */
  above: number;
  /** Sides that a picture of these sides may be brought to; absent: it is to stay as it is. */
  to(sides: Sides): Sides | undefined;
}

function reductionOf({ width, height }: ImageHeader, reducing: Reducing | undefined): Reduction | undefined {
  if (!reducing || width * height <= reducing.above) return undefined;
  const plain = reducing.to({ width, height });
  const turned = reducing.to({ width: height, height: width });
  return plain && turned && { plain, turned };
}

/** What a codec's own words come to; they are not shown. */
function decodeFault(error: unknown, { format }: ImageHeader, name: string, { decodeSeconds }: Limits): AppError {
  if (error instanceof Error && /\btimeout\b/i.test(error.message))
    return new AppError('too_large', `${name} is a ${format} that takes longer than ${decodeSeconds} s to decode (decodeSeconds)`, { cause: error }); // biome-ignore format: one sentence
  return new AppError('invalid', `${name} is a ${format} that is truncated or damaged: it cannot be decoded`, { cause: error }); // biome-ignore format: one sentence
}

interface Admission {
  header: ImageHeader;
  name: string;
  /** Of the request's deadline. */
  remainingMs?: () => number;
}

async function decodeChecked(
  bytes: Buffer,
  { header, name, remainingMs }: Admission,
  wish: DecodeWish,
): Promise<Picture> {
  const pixels = header.width * header.height;
  const turn = admit(pixels);
  if (turn) await turn;
  try {
    if (turn && remainingMs?.() === 0)
      throw new AppError('timeout', `${name} was not decoded: its turn came when no time was left`);
    return await (await codec()).decode(bytes, wish);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw decodeFault(error, header, name, wish);
  } finally {
    release(pixels);
  }
}

/** Decodes with options that were checked before; `name` stands in messages. */
export function decodeNamed(
  image: unknown,
  name: string,
  limits: Limits,
  { reducing, remainingMs }: { reducing?: Reducing; remainingMs?: () => number } = {},
): Promise<Picture> {
  const bytes = imageBytes(image, name, limits.maxBytes);
  const header = readImageHeader(bytes, name);
  checkHeader(header, name, limits);
  const reduce = reductionOf(header, reducing);
  return decodeChecked(
    bytes,
    { header, name, remainingMs },
    { ...limits, cmyk: header.cmyk ?? false, ...(reduce && { reduce }) },
  );
}

/**
 * A JPEG, PNG or WebP (by its bytes) as RGB: from a Buffer, base64 or a `data:` URL. Turned as EXIF says; transparent
 * pixels lie over `background`; 16 bits become 8; gray and CMYK become RGB; colour profiles are not applied, as in Pillow.
 * Throws `unsupported_media_type` (another format), `too_large` (by the header, ahead of decoding), `invalid` (truncated,
 * damaged, animated).
 */
export async function decodeImage(image: unknown, options: DecodeOptions = {}): Promise<Picture> {
  return decodeNamed(image, 'image', checkDecodeOptions(options));
}
