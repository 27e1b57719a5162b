/**
 * A model of visual entailment in OFA's manner: a picture, a text about it and a second text in, a score for each of
 * entailment, neutral and contradiction out. No weights of OFA are in the package registries; this one is made of the words
 * in words.mjs: the picture is the mean colour of its thirds, a text the sum over its words, and the cosine of the second
 * text to picture and first text together decides, entailment from 0.5 up, contradiction from -0.1 down. Writes model.onnx,
 * tokenizer.json and labels.txt.
 *
 *     node examples/visual-entailment/model.mjs       prints the folder
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../../scripts/models/cache.mjs';
import { constant, node, types, valueInfo, writeModel } from '../../scripts/models/onnx.mjs';
import { tokenizerJson, vocabulary, wordVector } from './words.mjs';

const labels = ['entailment', 'neutral', 'contradiction'];
/** Of the cosine, and added: lines that cross at 0.5 and at -0.1. */
const slopes = [20, 0, -20];
const offsets = [-10, 0, -2];

const side = 48;
/** CLIP's own; what the module takes away is put back. */
const mean = [0.48145466, 0.4578275, 0.40821073];
const std = [0.26862954, 0.26130258, 0.27577711];
const size = 9;

const floats = (name, shape, values) => constant(name, types.FP32, shape, Float32Array.from(values));
const wholes = (name, ...values) => constant(name, types.INT64, [values.length], BigInt64Array.from(values, BigInt));
const float = (from, output) => node('Cast', [from], [output], { to: { i: types.FP32 } });
const toLengthOne = (from, output) => node('LpNormalization', [from], [output], { axis: { i: -1 }, p: { i: 2 } });

/** `pixel_values` to `image` [batch, 9]: thirds by their mean colour, 0 in the middle of the scale. */
const imageSide = [
  node('AveragePool', ['pixel_values'], ['thirds'], {
    kernel_shape: { ints: [side / 3, side] },
    strides: { ints: [side / 3, side] },
  }),
  node('Mul', ['thirds', 'std'], ['scaled']),
  node('Add', ['scaled', 'mean'], ['colours']),
  node('Flatten', ['colours'], ['flat'], { axis: { i: 1 } }),
  toLengthOne('flat', 'image'),
];

/** Sum of the vectors of `input_ids` where `mask` [batch, sequence] is 1. */
const textSide = (mask, output) => [
  node('Gather', ['words', 'input_ids'], [`${output}.words`]),
  node('Unsqueeze', [mask, 'axis.size'], [`${output}.mask`]),
  node('Mul', [`${output}.words`, `${output}.mask`], [`${output}.masked`]),
  node('ReduceSum', [`${output}.masked`, 'axis.tokens'], [`${output}.sum`], { keepdims: { i: 0 } }),
  toLengthOne(`${output}.sum`, output),
];

const weights = () => [
  floats('std', [3, 1, 1], std),
  floats('mean', [3, 1, 1], mean.map((value) => value - 0.5)), // biome-ignore format: a row each
  floats('words', [vocabulary.length, size], vocabulary.flatMap(wordVector)),
  floats('slopes', [1, 3], slopes),
  floats('offsets', [3], offsets),
  wholes('axis.tokens', 1),
  wholes('axis.size', 2),
];

const graph = () => ({
  weights: weights(),
  graph: {
    name: 'visual-entailment',
    node: [
      ...imageSide,
      float('attention_mask', 'mask'),
      float('token_type_ids', 'second'),
      node('Mul', ['mask', 'second'], ['mask.2']),
      node('Sub', ['mask', 'mask.2'], ['mask.1']),
      ...textSide('mask.1', 'text1'),
      ...textSide('mask.2', 'text2'),
      node('Add', ['image', 'text1'], ['both']),
      toLengthOne('both', 'premise'),
      node('Mul', ['premise', 'text2'], ['product']),
      node('ReduceSum', ['product', 'axis.tokens'], ['cosine'], { keepdims: { i: 1 } }),
      node('MatMul', ['cosine', 'slopes'], ['sloped']),
      node('Add', ['sloped', 'offsets'], ['logits']),
    ],
    input: [
      valueInfo('pixel_values', types.FP32, ['batch', 3, side, side]),
      ...['input_ids', 'attention_mask', 'token_type_ids'].map((name) =>
        valueInfo(name, types.INT64, ['batch', 'sequence']),
      ),
    ],
    output: [valueInfo('logits', types.FP32, ['batch', 3])],
  },
});

/** Folder with the model, its tokenizer and its labels, built once a machine. */
export const entailmentFolder = () =>
  cachedFolder('colour-entailment.r1', async (folder) => {
    await writeModel(join(folder, 'model.onnx'), graph());
    await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizerJson()));
    await writeFile(join(folder, 'labels.txt'), `${labels.join('\n')}\n`);
  });

if (process.argv[1] && import.meta.filename === process.argv[1]) console.log(await entailmentFolder());
