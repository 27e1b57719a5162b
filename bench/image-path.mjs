/**
 * How many pictures a core prepares in a second: JPEG 640 x 480 to [1, 3, 224, 224] FP32, as the built-in does it for a
 * request (decoding, Pillow's bilinear, mean and deviation), beside what sharp alone takes to decode and resize it.
 */
import { loadProcessing } from '@perch/processing/host';
import sharp from 'sharp';
import { median } from './measure.mjs';

const side = 224;
const pictures = 150;
const atOnce = 8;

/** A photograph's share of edges and noise, so that decoding costs what it does. */
async function photograph() {
  const [width, height] = [640, 480];
  const data = Buffer.alloc(width * height * 3);
  for (let i = 0; i < data.length; i++) {
    const x = Math.floor(i / 3) % width;
    const y = Math.floor(i / 3 / width);
    data[i] = 128 + 90 * Math.sin(x / 23 + (i % 3)) * Math.cos(y / 17) + ((i * 2_654_435_761) % 23);
  }
  return sharp(data, { raw: { width, height, channels: 3 } }).jpeg({ quality: 88 }).toBuffer();
}

async function picturesPerSecond(prepare) {
  const before = process.cpuUsage();
  const workers = Array.from({ length: atOnce }, async () => {
    for (let at = 0; at < pictures / atOnce; at += 1) await prepare();
  });
  await Promise.all(workers);
  const { user, system } = process.cpuUsage(before);
  return (Math.ceil(pictures / atOnce) * atOnce * 1e6) / (user + system);
}

export async function measureImagePath({ rounds, say }) {
  sharp.concurrency(1);
  sharp.cache(false);
  const jpeg = await photograph();
  const loaded = await loadProcessing({
    builtin: 'image-classification',
    options: { imageMean: [0.485, 0.456, 0.406], imageStd: [0.229, 0.224, 0.225] },
    files: { list: () => [], read: () => Promise.reject(new Error('there are no files')) },
    signature: {
      inputs: [{ name: 'pixel_values', datatype: 'FP32', shape: [-1, 3, side, side] }],
      outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, 1000] }],
    },
    maxBatchSize: 8,
  });
  const cases = {
    ours: () => loaded.preprocess(jpeg, 'image/jpeg', { remainingMs: () => 1 }),
    sharp: () => sharp(jpeg).resize(side, side, { fit: 'fill', kernel: 'linear', fastShrinkOnLoad: false }).raw().toBuffer(),
    decoding: () => sharp(jpeg).raw().toBuffer(),
  };
  const figures = { ours: [], sharp: [], decoding: [] };
  for (let round = 0; round <= rounds; round += 1)
    for (const [name, prepare] of Object.entries(cases)) {
      const value = await picturesPerSecond(prepare);
      if (round > 0) figures[name].push(value);
    }
  const of = (name) => median(figures[name]);
  say(`image path: a JPEG of ${jpeg.length} bytes, 640 x 480, to ${side} x ${side}`);
  return [
    { name: 'pictures a second on one core, to a tensor', value: of('ours'), unit: '/s' },
    { name: 'pictures a second on one core, sharp alone', value: of('sharp'), unit: '/s' },
    { name: 'pictures a second on one core, decoding alone', value: of('decoding'), unit: '/s' },
  ];
}
