import { AppError } from '@perch/contracts/plain';

export interface ImageHeader {
  format: 'jpeg' | 'png' | 'webp';
  width: number;
  height: number;
  /** Of more than one frame. */
  animated: boolean;
  /** A JPEG of four channels: CMYK, or YCCK. */
  cmyk?: boolean;
}

const others: [RegExp, string][] = [
  [/^GIF8/, 'a GIF'],
  [/^(II\*\0|MM\0\*)/, 'a TIFF'],
  [/^BM/, 'a BMP'],
  [/^....ftyp(avif|avis)/s, 'an AVIF'],
  [/^....ftyp(heic|heix|mif1|msf1)/s, 'a HEIC'],
  [/^%PDF/, 'a PDF'],
  [/^\s*<(\?xml|svg|!DOCTYPE)/i, 'SVG or other markup'],
];

const cut = (format: string, name: string): never => {
  throw new AppError(
    'invalid',
    `${name} is a ${format} that is truncated or damaged: its header does not name its sides`,
  );
};

/** Frame headers are SOF0 to SOF15 but DHT, JPG and DAC (ITU-T T.81, table B.1). */
const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

function jpegHeader(bytes: Buffer, name: string): ImageHeader {
  for (let at = 2; at + 9 < bytes.length; ) {
    if (bytes[at] !== 0xff) return cut('JPEG', name);
    const marker = bytes[at + 1]!;
    if (marker === 0xff) at += 1;
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += 2;
    else if (isFrame(marker))
      return {
        format: 'jpeg',
        height: bytes.readUInt16BE(at + 5),
        width: bytes.readUInt16BE(at + 7),
        animated: false,
        cmyk: bytes[at + 9] === 4,
      };
    else at += 2 + Math.max(2, bytes.readUInt16BE(at + 2));
  }
  return cut('JPEG', name);
}

/** IHDR is the first chunk; an animated PNG has acTL (frames at its beginning) ahead of IDAT. */
function pngHeader(bytes: Buffer, name: string): ImageHeader {
  if (bytes.length < 33 || bytes.toString('latin1', 12, 16) !== 'IHDR') return cut('PNG', name);
  let animated = false;
  for (let at = 8; at + 12 <= bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    const kind = bytes.toString('latin1', at + 4, at + 8);
    if (kind === 'IDAT') break;
    if (kind === 'acTL') animated = bytes.readUInt32BE(at + 8) > 1;
  }
  return { format: 'png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20), animated };
}

/** RFC 9649: VP8X holds the canvas (24 bits, less one) and flags; VP8L 14 bits each, less one; VP8 14 bits each. */
function webpHeader(bytes: Buffer, name: string): ImageHeader {
  if (bytes.length < 30) return cut('WebP', name);
  const kind = bytes.toString('latin1', 12, 16);
  if (kind === 'VP8X')
    return {
      format: 'webp',
      width: bytes.readUIntLE(24, 3) + 1,
      height: bytes.readUIntLE(27, 3) + 1,
      animated: (bytes[20]! & 2) !== 0,
    };
  if (kind === 'VP8L') {
    const bits = bytes.readUInt32LE(21);
    return { format: 'webp', width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1, animated: false };
  }
  if (kind !== 'VP8 ') return cut('WebP', name);
  return {
    format: 'webp',
    width: bytes.readUInt16LE(26) & 0x3fff,
    height: bytes.readUInt16LE(28) & 0x3fff,
    animated: false,
  };
}

/**
 * Format and sides by the first bytes, whatever name or content type came along; nothing is decoded. Throws
 * `unsupported_media_type` for what is no JPEG, PNG or WebP, `invalid` for a header that is cut off.
 */
export function readImageHeader(bytes: Buffer, name = 'image'): ImageHeader {
  const start = bytes.toString('latin1', 0, 16);
  const header = start.startsWith('\xff\xd8\xff')
    ? jpegHeader(bytes, name)
    : start.startsWith('\x89PNG\r\n\x1a\n')
      ? pngHeader(bytes, name)
      : /^RIFF....WEBP/s.test(start)
        ? webpHeader(bytes, name)
        : undefined;
  if (header) return header.width > 0 && header.height > 0 ? header : cut(header.format.toUpperCase(), name);
  const what = others.find(([pattern]) => pattern.test(start))?.[1] ?? 'no picture that is known here';
  throw new AppError('unsupported_media_type', `${name} is ${what}, wanted JPEG, PNG or WebP`);
}
