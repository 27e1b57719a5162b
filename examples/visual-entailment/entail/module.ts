import {
  asFloats,
  bytesOf,
  decodeImage,
  defineProcessing,
  imageTensor,
  int64,
  invalid,
  type PreparationOptions,
} from '@perch/processing';

interface Request {
  /** Base64, a `data:` URL, or a file of a multipart request. */
  image: string | Buffer;
  /** What is said about the picture. */
  text1: string;
  /** What may follow from both, or not. */
  text2: string;
}

const preparation: PreparationOptions = {
  size: { height: 48, width: 48 },
  resample: 'bicubic',
  imageMean: [0.48145466, 0.4578275, 0.40821073],
  imageStd: [0.26862954, 0.26130258, 0.27577711],
};

const whole = (values: Int32Array, shape: readonly number[]) => int64(BigInt64Array.from(values, BigInt), shape);

/** Whether a picture and a text say a second text. Over `/v2` all three are BYTES, and so is the answer. */
export default defineProcessing({
  task: 'visual-entailment',
  inputs: [
    { name: 'image', datatype: 'BYTES', shape: [1] },
    { name: 'text1', datatype: 'BYTES', shape: [1] },
    { name: 'text2', datatype: 'BYTES', shape: [1] },
  ],
  outputs: [{ name: 'answer', datatype: 'BYTES', shape: [1] }],
  defaults: { text1: 'a photo' },

  async load({ files }) {
    return { tokenizer: await files.tokenizer(), labels: await files.labels() };
  },

  async preprocess(body: Request, { tokenizer }) {
    if (typeof body?.text1 !== 'string' || typeof body.text2 !== 'string')
      throw invalid('text2 is missing, wanted {image, text1, text2}');
    const picture = await decodeImage(bytesOf(body.image, 'image'));
    const { ids, mask, types, shape } = tokenizer.encodeBatch([[body.text1, body.text2]], { maxTokens: 128 });
    return {
      inputs: {
        pixel_values: imageTensor(picture, preparation),
        input_ids: whole(ids, shape),
        attention_mask: whole(mask, shape),
        token_type_ids: whole(types, shape),
      },
    };
  },

  postprocess(outputs, { loaded: { labels } }, ctx) {
    const logits = [...asFloats(outputs['logits']!)];
    const most = Math.max(...logits);
    const powers = logits.map((one) => Math.exp(one - most));
    const sum = powers.reduce((total, one) => total + one, 0);
    const best = logits.indexOf(most);
    const confidence = powers[best]! / sum;
    ctx.observe('confidence', confidence);
    return {
      label: labels[best],
      confidence,
      all_scores: Object.fromEntries(labels.map((label, at) => [label, powers[at]! / sum])),
    };
  },
});
