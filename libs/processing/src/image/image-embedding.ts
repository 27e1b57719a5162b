import { AppError, type ImageEmbeddingOptions, type TensorSpec } from '@perch/contracts';
import { defineProcessing, type LoadSetup } from '../contract.ts';
import { normalizeRows, poolFirst, poolMean } from '../text-embedding/pool.ts';
import { writeVectors } from '../text-embedding/reply.ts';
import { checkOtherInputs, type ImageInput, loadImageInput } from './image-input.ts';
import { findOutput, readRows } from './model-output.ts';

interface Loaded {
  options: ImageEmbeddingOptions;
  images: ImageInput;
  output: TensorSpec;
}

export const imageVectorNames = ['image_embeds', 'image_features', 'image_embedding', 'pooler_output', 'embedding', 'last_hidden_state']; // biome-ignore format: one row reads better

/** Mean over a map of [size, height, width]: global average pooling. */
function poolMap(values: Float32Array, count: number, size: number): Float32Array {
  const rows = new Float32Array(count * size);
  const places = values.length / rows.length;
  for (let i = 0; i < rows.length; i++) {
    let sum = 0;
    for (let at = i * places; at < (i + 1) * places; at++) sum += values[at]!;
    rows[i] = sum / places;
  }
  return rows;
}

/** One vector for each picture, whatever the output's dimensions: [n, size], [n, patches, size], [n, size, height, width]. */
export function poolPictures(
  values: Float32Array,
  shape: readonly number[],
  pooling: 'cls' | 'mean',
): { rows: Float32Array; size: number } {
  const [count = 1, second = 0, third = 0] = shape;
  if (shape.length === 2) return { rows: Float32Array.from(values), size: second };
  if (shape.length === 4) return { rows: poolMap(values, count, second), size: second };
  if (shape.length !== 3)
    throw new AppError('upstream', `the output has shape [${shape.join(', ')}], wanted 2, 3 or 4 dimensions`);
  const mask = new Int32Array(count * second).fill(1);
  const vectors = { values, mask, texts: count, tokens: second, size: third };
  return { rows: pooling === 'mean' ? poolMean(vectors) : poolFirst(vectors), size: third };
}

/** Pictures in, vectors out: `{embedding}` for one, `{embeddings}` for a list. */
export const imageEmbedding = defineProcessing({
  task: 'image-embedding',
  async load(setup: LoadSetup<ImageEmbeddingOptions>): Promise<Loaded> {
    const images = await loadImageInput(setup);
    checkOtherInputs(setup, [images.plan.input.name], 'image-embedding');
    const wish = { name: setup.options.output, option: 'output', usual: imageVectorNames, builtin: 'image-embedding' };
    return { options: setup.options, images, output: findOutput(setup.signature, wish) };
  },
  async preprocess(body: unknown, { images }: Loaded, ctx) {
    const { tensor, single, count } = await images.read(body, ctx);
    return { inputs: { [images.plan.input.name]: tensor }, carry: { single, count } };
  },
  postprocess(outputs, { loaded: { options, images, output }, carry }) {
    const { values, shape } = readRows(outputs, output.name, { count: carry.count, batched: images.plan.batched });
    const { rows, size } = poolPictures(values, shape, options.pooling);
    if (options.normalize) normalizeRows(rows, size);
    const field = options.outputField ?? (carry.single ? 'embedding' : 'embeddings');
    return writeVectors(rows, { field, single: carry.single, size, encoding: options.encoding });
  },
});
