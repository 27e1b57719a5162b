import { asFloats, bytesOf, decodeImage, defineProcessing, imageTensor } from '@perch/processing';
import { boxesOf } from '../../modules/boxes.ts';

interface Request {
  image: string | Buffer;
}

/** Pixels of a cell, and how colourful one must be: from 0, gray, to 1. */
const cell = 4;
const threshold = 0.2;
const leastCells = 4;

/** Where coloured patches lie in a picture, in its pixels, in the order of their tops. */
export default defineProcessing({
  task: 'object-detection',

  async preprocess(body: Request) {
    return { inputs: { pixels: imageTensor(await decodeImage(bytesOf(body.image, 'image'))) } };
  },

  postprocess(outputs) {
    const map = outputs['cells']!;
    const [height, width] = map.shape.slice(-2) as [number, number];
    const boxes = boxesOf({ values: asFloats(map) as Float32Array, width, height }, threshold)
      .filter((box) => box.width * box.height >= leastCells)
      .map((box) => ({
        left: box.left * cell,
        top: box.top * cell,
        width: box.width * cell,
        height: box.height * cell,
        score: box.score,
      }));
    return { boxes };
  },
});
