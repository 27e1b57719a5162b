/** A desk with things on it, seen from above, and one picture of each thing alone. Deterministic. */
import sharp from 'sharp';

const red = [205, 60, 45];
const green = [60, 150, 55];
const blue = [70, 130, 215];
const yellow = [220, 200, 80];

/** Colours of the upper and of the lower half. */
export const things = {
  tomato: [red, red],
  lime: [green, green],
  carrot: [green, red],
  pencil: [yellow, blue],
  lemon: [yellow, yellow],
};

/** What lies where; sides are multiples of 4. */
export const placed = [
  { name: 'carrot', left: 24, top: 16, width: 32, height: 64 },
  { name: 'lemon', left: 120, top: 24, width: 48, height: 40 },
  { name: 'pencil', left: 208, top: 40, width: 16, height: 96 },
  { name: 'tomato', left: 32, top: 112, width: 56, height: 56 },
  { name: 'lime', left: 136, top: 120, width: 40, height: 40 },
];

const noise = (x, y) => ((x * 7_919 + y * 104_729) % 23) - 11;

function drawn(width, height, colour) {
  const data = Buffer.alloc(width * height * 3);
  for (let y = 0, at = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      for (const level of colour(x, y)) {
        data[at] = Math.max(0, Math.min(255, level + noise(x, y)));
        at += 1;
      }
  return sharp(data, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();
}

export const desk = () =>
  drawn(256, 192, (x, y) => {
    const on = placed.find(({ left, top, width, height }) => x >= left && x < left + width && y >= top && y < top + height); // biome-ignore format: one row
    return on ? things[on.name][Number(y >= on.top + on.height / 2)] : [150, 148, 145];
  });

export const alone = (name) => drawn(64, 64, (_x, y) => things[name][Number(y >= 32)]);
