import { asFloats, bytesOf, decodeImage, defineProcessing, imageTensor, type PictureBox } from '@perch/processing';
import { boxesOf } from '../../modules/boxes.ts';

interface Request {
  image: string | Buffer;
}

/** As PP-OCRv4's own configuration: cells above 0.3 are text; boxes of 0.6 on average count; 1.5 widens them again. */
const cellThreshold = 0.3;
const boxThreshold = 0.6;
const unclipRatio = 1.5;
const leastSide = 3;
const longestSide = 960;

/** The network halves five times, so sides are multiples of 32. */
const fitted = (side: number, scale: number) => Math.max(32, Math.round((side * scale) / 32) * 32);

/** A box is the text's core; by how much it is wider (Vatti clipping of a rectangle: area x ratio / perimeter). */
function unclipped({ left, top, width, height }: PictureBox): PictureBox {
  const by = (width * height * unclipRatio) / (2 * (width + height));
  return { left: left - by, top: top - by, width: width + 2 * by, height: height + 2 * by };
}

/** Where text stands in a picture: PP-OCR's detector (differentiable binarization), lines from the top. */
export default defineProcessing({
  task: 'text-detection',

  async preprocess(body: Request) {
    const picture = await decodeImage(bytesOf(body.image, 'image'));
    const { width, height } = picture;
    const scale = Math.min(1, longestSide / Math.max(width, height));
    const x = imageTensor(picture, {
      size: { height: fitted(height, scale), width: fitted(width, scale) },
      antialias: false,
      channels: 'bgr',
      imageMean: [0.485, 0.456, 0.406],
      imageStd: [0.229, 0.224, 0.225],
    });
    return { inputs: { x }, carry: { width, height } };
  },

  postprocess(outputs, { carry }, ctx) {
    const map = outputs['sigmoid_0.tmp_0']!;
    const [height, width] = map.shape.slice(-2) as [number, number];
    const [across, down] = [carry.width / width, carry.height / height];
    const boxes = boxesOf({ values: asFloats(map) as Float32Array, width, height }, cellThreshold)
      .filter((box) => box.score >= boxThreshold && Math.min(box.width, box.height) >= leastSide)
      .map((box) => {
        const wide = unclipped(box);
        const left = Math.max(0, Math.round(wide.left * across));
        const top = Math.max(0, Math.round(wide.top * down));
        const right = Math.min(carry.width, Math.round((wide.left + wide.width) * across));
        const bottom = Math.min(carry.height, Math.round((wide.top + wide.height) * down));
        return { left, top, width: right - left, height: bottom - top, score: box.score };
      })
      .sort((a, b) => a.top - b.top || a.left - b.left);
    ctx.observe('boxes', boxes.length);
    return { boxes };
  },
});
