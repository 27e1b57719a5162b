import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Picture } from './picture.ts';

/** A file of reference/images/pictures; for specs. */
export const pictureFile = (name: string): Buffer =>
  readFileSync(fileURLToPath(new URL(`../../reference/images/pictures/${name}`, import.meta.url)));

/** A picture of one colour. */
export function plainPicture(width: number, height: number, colour: readonly number[]): Picture {
  const data = Uint8Array.from({ length: width * height * colour.length }, (_, i) => colour[i % colour.length]!);
  return { width, height, channels: colour.length as 1 | 3, data };
}

/** A PNG that says it has so many pixels, and holds none. */
export function pngOf(width: number, height: number): Buffer {
  const header = Buffer.alloc(33);
  Buffer.from('\x89PNG\r\n\x1a\n', 'latin1').copy(header);
  header.writeUInt32BE(13, 8);
  header.write('IHDR', 12, 'latin1');
  header.writeUInt32BE(width, 16);
  header.writeUInt32BE(height, 20);
  header.set([8, 2, 0, 0, 0], 24);
  return header;
}
