import type { ImageClassificationOptions, TensorSpec } from '@perch/contracts';
import { AppError } from '@perch/contracts';
import { defineProcessing, type LoadSetup } from '../contract.ts';
import { checkOtherInputs, type ImageInput, loadImageInput } from './image-input.ts';
import { findOutput, readRows } from './model-output.ts';
import { rank, sigmoid, softmax } from './scores.ts';

interface Loaded {
  options: ImageClassificationOptions;
  images: ImageInput;
  output: TensorSpec;
  labels: string[];
}

const curves = { softmax, sigmoid, none: (row: ArrayLike<number>) => row };

async function readLabels({ options, files }: LoadSetup<ImageClassificationOptions>): Promise<string[]> {
  if (options.labels) return options.labels;
  const config = files.has('config.json') ? await files.json('config.json') : undefined;
  if (config && typeof config === 'object' && 'id2label' in config) return files.labels('config.json');
  return files.has('labels.txt') ? files.labels() : [];
}

/** Fewer labels than classes is a mistake that would show only in replies. */
function checkLabels(labels: string[], { name, shape }: TensorSpec): void {
  const classes = shape.filter((dim, i) => i > 0 && dim !== 1).at(-1) ?? -1;
  if (labels.length > 0 && classes > 0 && labels.length !== classes)
    throw new AppError('invalid', `processing image-classification: there are ${labels.length} labels, but output "${name}" has ${classes} classes`); // biome-ignore format: one sentence
}

/** Pictures in, the likeliest labels out: `{label, score, scores}`, or `{results: […]}` for a list. */
export const imageClassification = defineProcessing({
  task: 'image-classification',
  async load(setup: LoadSetup<ImageClassificationOptions>): Promise<Loaded> {
    const images = await loadImageInput(setup);
    checkOtherInputs(setup, [images.plan.input.name], 'image-classification');
    const output = findOutput(setup.signature, {
      name: setup.options.output,
      option: 'output',
      usual: ['logits', 'probabilities', 'scores'],
      builtin: 'image-classification',
    });
    const labels = await readLabels(setup);
    checkLabels(labels, output);
    return { options: setup.options, images, output, labels };
  },
  async preprocess(body: unknown, { images }: Loaded, ctx) {
    const { tensor, single, count } = await images.read(body, ctx);
    return { inputs: { [images.plan.input.name]: tensor }, carry: { single, count } };
  },
  postprocess(outputs, { loaded, carry }) {
    const { options, images, output, labels } = loaded;
    const { values } = readRows(outputs, output.name, { count: carry.count, batched: images.plan.batched });
    const classes = values.length / carry.count;
    const rankings = Array.from({ length: carry.count }, (_, i) =>
      rank(curves[options.scores](values.subarray(i * classes, (i + 1) * classes)), labels, options.topK),
    );
    return carry.single ? rankings[0] : { results: rankings };
  },
});
