import { asFloats, bytesOf, decodeImage, defineProcessing, imageTensor } from '@perch/processing';

interface Request {
  /** One line of text. */
  image: string | Buffer;
}

/** What PP-OCRv4 was trained on: 48 pixels high, at least 320 wide, the rest of it empty. */
const height = 48;
const leastWidth = 320;
const mostWidth = 3_200;

/** Reads a line of text: PP-OCR's recognizer, decoded greedily (connectionist temporal classification). */
export default defineProcessing({
  task: 'ocr',

  async load({ files }) {
    // class 0 is "nothing here", the last one a space
    return ['', ...(await files.labels('ppocr_keys_v1.txt')), ' '];
  },

  async preprocess(body: Request) {
    const picture = await decodeImage(bytesOf(body.image, 'image'));
    const width = Math.min(mostWidth, Math.max(1, Math.ceil((height * picture.width) / picture.height)));
    const x = imageTensor(picture, {
      size: { height, width },
      antialias: false,
      channels: 'bgr',
      imageMean: [0.5],
      imageStd: [0.5],
      pad: { height, width: Math.max(width, leastWidth) },
    });
    return { inputs: { x } };
  },

  postprocess(outputs, { loaded: characters }) {
    const shares = outputs['softmax_11.tmp_0']!;
    const [steps, classes] = shares.shape.slice(-2) as [number, number];
    if (classes !== characters.length) throw new Error(`${classes} classes for ${characters.length} characters`);
    const values = asFloats(shares);
    let text = '';
    let sum = 0;
    let count = 0;
    let last = 0;
    for (let step = 0; step < steps; step += 1) {
      const row = values.subarray(step * classes, (step + 1) * classes);
      const best = (row as Float32Array).reduce((most, share, at) => (share > row[most]! ? at : most), 0);
      if (best !== 0 && best !== last) {
        text += characters[best];
        sum += row[best]!;
        count += 1;
      }
      last = best;
    }
    return { text, confidence: count === 0 ? 0 : sum / count };
  },
});
