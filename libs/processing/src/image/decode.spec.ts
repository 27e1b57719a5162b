import { AppError, decodeOptions } from '@perch/contracts';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { hostCodec, type ImageCodec } from './codec.ts';
import { decodeImage, decodeNamed } from './decode.ts';
import { encodeImage } from './encode.ts';
import { readImageHeader } from './image-header.ts';
import { pictureFile, plainPicture, pngOf } from './picture.fake.ts';

const host = globalThis as { [hostCodec]?: ImageCodec };
afterEach(() => {
  delete host[hostCodec];
});
const refusal = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) });
const sides = ({ width, height }: { width: number; height: number }) => [width, height];

describe('a picture of a request', () => {
  const jpeg = pictureFile('photo.jpg');

  it.each<[string, unknown]>([
    ['bytes', jpeg],
    ['a view of bytes', new Uint8Array(Buffer.concat([Buffer.alloc(3), jpeg])).subarray(3)],
    ['base64', jpeg.toString('base64')],
    ['base64 with line ends', jpeg.toString('base64').replace(/.{76}/g, '$&\r\n')],
    ['a data: URL that names another type', `data:image/png;base64,${jpeg.toString('base64')}`],
    ['{"b64"}', { b64: jpeg.toString('base64') }],
  ])('is read from %s, by its content', async (_what, image) => {
    expect(sides(await decodeImage(image))).toEqual([320, 240]);
  });

  it.each<[string, unknown, string, string]>([
    ['a number', 5, 'invalid', 'image is a number'],
    ['nothing', undefined, 'invalid', 'image is'],
    ['no bytes', Buffer.alloc(0), 'invalid', 'image is empty'],
    ['an empty text', '', 'invalid', 'image is'],
    ['text that is no base64', 'a picture!', 'invalid', 'image is not valid base64'],
    ['an address', 'https://example.org/cat.jpg', 'invalid', 'pictures are not fetched'],
    ['a GIF', pictureFile('animated.gif'), 'unsupported_media_type', 'image is a GIF, wanted JPEG, PNG or WebP'],
    ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'unsupported_media_type', 'SVG'],
    ['a text file', Buffer.from('hello'), 'unsupported_media_type', 'wanted JPEG, PNG or WebP'],
    ['a PNG of no pixels', pngOf(0, 5), 'invalid', 'does not name its sides'],
    ['a JPEG that ends in its header', jpeg.subarray(0, 40), 'invalid', 'truncated or damaged'],
  ])('is refused: %s', async (_what, image, code, message) => {
    await expect(decodeImage(image)).rejects.toThrow(refusal(code, message));
  });

  it.each(['photo.jpg', 'progressive-444.jpg', 'plain.png', 'lossless.webp', 'lossy.webp', 'alpha.png', 'cmyk.jpg'])(
    'is refused where %s is cut off',
    async (name) => {
      const whole = pictureFile(name);
      for (const share of [0.3, 0.6, 0.9])
        await expect(decodeImage(whole.subarray(0, Math.floor(whole.length * share)))).rejects.toThrow(
          refusal('invalid', 'truncated or damaged'),
        );
    },
  );

  it.each(['animated.webp', 'animated.png'])('is refused where %s moves, or its first frame is taken', async (name) => {
    await expect(decodeImage(pictureFile(name))).rejects.toThrow(refusal('invalid', 'is an animated'));
    expect(sides(await decodeImage(pictureFile(name), { animated: 'first' }))).toEqual([40, 30]);
  });

  it('never fails in another way than by name, whatever bytes come', async () => {
    const files = ['photo.jpg', 'palette.png', 'lossy.webp', 'animated.webp'].map(pictureFile);
    const spoiled = fc.tuple(fc.constantFrom(...files), fc.nat(), fc.nat(), fc.nat(255)).map(([file, at, to, byte]) => {
      const bytes = Buffer.from(file.subarray(0, Math.max(1, to % file.length)));
      bytes[at % Math.min(64, bytes.length)] = byte;
      return bytes;
    });
    await fc.assert(
      fc.asyncProperty(spoiled, async (bytes) => {
        const outcome = await decodeImage(bytes).then(
          () => 'decoded',
          (error: unknown) => (error instanceof AppError ? error.code : String(error)),
        );
        expect(['decoded', 'invalid', 'too_large', 'unsupported_media_type']).toContain(outcome);
      }),
      { numRuns: 60 },
    );
  });
});

describe('limits', () => {
  it('refuse a bomb by its header, and never decode it', async () => {
    host[hostCodec] = {
      decode: () => Promise.reject(new Error('was decoded')),
      encode: () => Promise.reject(new Error('was encoded')),
    };
    await expect(decodeImage(pngOf(10_000, 10_000))).rejects.toThrow(
      refusal('too_large', 'image has 10000 x 10000 pixels, at most 40000000'),
    );
    await expect(decodeImage(pngOf(2 ** 31 - 1, 2 ** 31 - 1))).rejects.toThrow(refusal('too_large', 'maxPixels'));
    await expect(decodeImage(pictureFile('photo.jpg'), { maxPixels: 1000 })).rejects.toThrow(
      refusal('too_large', '320 x 240'),
    );
    await expect(decodeImage(Buffer.alloc(2000), { maxBytes: 1999 })).rejects.toThrow(
      refusal('too_large', 'has 2000 bytes, at most 1999'),
    );
    await expect(decodeImage('A'.repeat(4000), { maxBytes: 1999 })).rejects.toThrow(refusal('too_large', 'maxBytes'));
  });

  it('hold sides that a file lies about in its body', async () => {
    const small = pictureFile('plain.png');
    const lying = Buffer.from(small);
    lying.writeUInt32BE(5_000, 16);
    await expect(decodeImage(lying)).rejects.toThrow(refusal('invalid', 'truncated or damaged'));
  });

  it('hold how many pixels are decoded at once; what waits goes in its order', async () => {
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    host[hostCodec] = {
      decode: async (bytes) => {
        const { width } = readImageHeader(Buffer.from(bytes));
        begun.push(width);
        await new Promise<void>((end) => ends.push(end));
        return plainPicture(1, 1, [0, 0, 0]);
      },
      encode: () => Promise.reject(new Error('not asked')),
    };
    const all = [6001, 6002, 6003, 6004].map((width) => decodeImage(pngOf(width, 6000)));
    const settle = () => new Promise((done) => setImmediate(done));
    await settle();
    expect(begun).toEqual([6001, 6002]);
    ends.shift()!();
    await settle();
    expect(begun).toEqual([6001, 6002, 6003]);
    while (ends.length > 0) {
      ends.shift()!();
      await settle();
    }
    expect(await Promise.all(all)).toHaveLength(4);
  });

  it('tell a picture that takes too long from a damaged one', async () => {
    const failing = (words: string): ImageCodec => ({
      decode: () => Promise.reject(new Error(words)),
      encode: () => Promise.reject(new Error('not asked')),
    });
    host[hostCodec] = failing('timeout: 42% complete');
    await expect(decodeImage(pngOf(9, 9), { decodeSeconds: 1 })).rejects.toThrow(
      refusal('too_large', 'image is a png that takes longer than 1 s to decode'),
    );
    host[hostCodec] = failing('VipsJpeg: out of order read');
    await expect(decodeImage(pngOf(9, 9))).rejects.toThrow(refusal('invalid', 'image is a png that is truncated'));
  });

  it('give up what had no time left when its turn came', async () => {
    const ends: (() => void)[] = [];
    host[hostCodec] = {
      decode: () => new Promise((end) => ends.push(() => end(plainPicture(1, 1, [0])))),
      encode: () => Promise.reject(new Error('not asked')),
    };
    const limits = decodeOptions.parse({});
    const large = pngOf(8000, 5000);
    const before = [1, 2].map(() => decodeNamed(large, 'image', limits, { remainingMs: () => 0 }));
    const late = decodeNamed(large, 'image', limits, { remainingMs: () => 0 });
    const refused = expect(late).rejects.toThrow(refusal('timeout', 'its turn came when no time was left'));
    await new Promise((done) => setImmediate(done));
    for (const end of ends) end();
    await refused;
    expect(await Promise.all(before)).toHaveLength(2);
  });

  it.each([{ maxPixels: 0 }, { animated: 'second' }, { nonsense: 1 }])('are checked: %j', async (options) => {
    await expect(decodeImage(pictureFile('dot.png'), options as object)).rejects.toThrow(refusal('invalid', 'decodeImage')); // biome-ignore format: one sentence
  });
});

describe('transparency', () => {
  it('lies over the background, white where none is named, or is dropped', async () => {
    const clear = pictureFile('alpha.png'); // clear at the left, solid at the right
    const corner = async (options: object) => [...(await decodeImage(clear, options)).data.subarray(0, 3)];
    expect(await corner({})).toEqual([255, 255, 255]);
    expect(await corner({ background: [10, 20, 30] })).toEqual([10, 20, 30]);
    expect(await corner({ alpha: 'drop' })).not.toEqual([255, 255, 255]);
  });
});

describe('encoding', () => {
  it('gives a PNG back as it was, a JPEG nearly', async () => {
    const picture = await decodeImage(pictureFile('plain.png'));
    expect(await decodeImage(await encodeImage(picture, { format: 'png' }))).toEqual(picture);
    const jpeg = await encodeImage(plainPicture(20, 10, [200, 100, 50]));
    expect(readImageHeader(jpeg)).toMatchObject({ format: 'jpeg', width: 20, height: 10 });
    const [red, green, blue] = (await decodeImage(jpeg)).data;
    expect([red, green, blue].map((level, i) => Math.abs(level! - [200, 100, 50][i]!) <= 2)).toEqual([
      true,
      true,
      true,
    ]);
    const gray = await encodeImage(plainPicture(4, 4, [7]), { format: 'png' });
    expect((await decodeImage(gray)).data[0]).toBe(7);
  });

  it('refuses levels that do not fill the sides, and odd qualities', async () => {
    await expect(encodeImage({ width: 2, height: 2, channels: 3, data: new Uint8Array(11) })).rejects.toThrow(
      refusal('invalid', 'wants 12 levels, got 11'),
    );
    await expect(encodeImage(plainPicture(1, 1, [0, 0, 0]), { quality: 0 })).rejects.toThrow('wanted 1 to 100');
  });
});
