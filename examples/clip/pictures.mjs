/** Landscapes as JPEG files: two halves, a little noise, a line of hills between them. */
import sharp from 'sharp';

const red = [205, 60, 45];
const green = [40, 160, 50];
const blue = [70, 130, 215];
const yellow = [220, 200, 80];

function level(x, y, channel, { upper, lower, width, height }) {
  const hill = height / 2 + (height / 24) * Math.sin((x / width) * 9);
  const noise = ((x * 7_919 + y * 104_729 + channel * 31) % 23) - 11;
  return Math.max(0, Math.min(255, (y < hill ? upper : lower)[channel] + noise));
}

async function landscape(upper, lower) {
  const [width, height] = [320, 240];
  const of = { upper, lower, width, height };
  const data = Buffer.alloc(width * height * 3);
  for (let i = 0; i < data.length; i++)
    data[i] = level(Math.floor(i / 3) % width, Math.floor(i / 3 / width), i % 3, of);
  return sharp(data, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 88 })
    .toBuffer();
}

/** Name and file of each picture. */
export const pictures = async () => ({
  'meadow.jpg': await landscape(blue, green),
  'beach.jpg': await landscape(blue, yellow),
  'sunset.jpg': await landscape(red, blue),
  'forest.jpg': await landscape(green, blue),
});
