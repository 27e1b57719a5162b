import { bytesOf, crop, decodeImage, defineProcessing, encodeImage, type PictureBox } from '@perch/processing';

interface Request {
  image: string | Buffer;
  box: PictureBox;
}

/** Cuts a box out of a picture: a PNG in base64. */
export default defineProcessing({
  task: 'image-crop',
  preprocess: (body: Request) => ({ inputs: {}, carry: body }),
  async process(_inputs, { carry: { image, box } }) {
    const cut = crop(await decodeImage(bytesOf(image, 'image')), box);
    return { image: (await encodeImage(cut, { format: 'png' })).toString('base64') };
  },
});
