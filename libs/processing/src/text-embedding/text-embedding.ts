import { AppError, type DataType, type Tensor, type Tensors, type TextEmbeddingOptions } from '@perch/contracts';
import { defineProcessing, type TextTokenizer, type TokenBatch } from '../contract.ts';
import { asFloat32, int32, int64 } from '../tensor.ts';
import { readTexts } from './body.ts';
import { type ModelPlan, planModel } from './model-plan.ts';
import { normalizeRows, poolFirst, poolMean } from './pool.ts';
import { writeTokenVectors, writeVectors } from './reply.ts';

interface Loaded {
  options: TextEmbeddingOptions;
  plan: ModelPlan;
  tokenizer: TextTokenizer;
}

interface Carry {
  /** The client sent one text, not a list. */
  single: boolean;
  mask: Int32Array;
  tokens: number;
}

/** Small whole numbers as INT64 without a bigint each: the low half is the number, the high half zero. */
function wide(values: Int32Array): BigInt64Array {
  const halves = new Int32Array(values.length * 2);
  for (let i = 0; i < values.length; i++) halves[2 * i] = values[i]!;
  return new BigInt64Array(halves.buffer);
}

const cast = (datatype: DataType, values: Int32Array, shape: readonly number[]): Tensor =>
  datatype === 'INT64' ? int64(wide(values), shape) : int32(values, shape);

function modelInputs({ ids, mask, kinds, batched }: ModelPlan, batch: TokenBatch): Tensors {
  const shape = batched ? batch.shape : [batch.shape[1]];
  const inputs: Tensors = { [ids.name]: cast(ids.datatype, batch.ids, shape) };
  if (mask) inputs[mask.name] = cast(mask.datatype, batch.mask, shape);
  if (kinds) inputs[kinds.name] = cast(kinds.datatype, batch.types, shape);
  return inputs;
}

/** The model's answer was not what its signature promised: its fault, not the client's. */
const broken = (name: string, shape: readonly number[], wanted: string) =>
  new AppError('upstream', `output "${name}" has shape [${shape.join(', ')}], wanted ${wanted}`);

/** Vectors of texts, or of all tokens where `pooling` is none. The shape tells whether the model pooled by itself. */
function readVectors(outputs: Tensors, { options, plan }: Loaded, { mask, tokens }: Carry) {
  const tensor = outputs[plan.output.name];
  if (!tensor) throw new AppError('upstream', `the model server left out output "${plan.output.name}"`);
  const texts = mask.length / tokens;
  const shape = plan.batched ? tensor.shape : [1, ...tensor.shape];
  const size = shape.at(-1) ?? 0;
  const pooled = shape.length === 2;
  const whole = pooled ? shape[0] === texts : shape.length === 3 && shape[0] === texts && shape[1] === tokens;
  if (!whole || size === 0)
    throw broken(plan.output.name, tensor.shape, `[${texts}, ${tokens}, size] or [${texts}, size]`);
  const values = asFloat32(tensor);
  if (pooled) return { rows: Float32Array.from(values), size, pooled: true };
  const vectors = { values, mask, texts, tokens, size };
  if (options.pooling === 'none') return { rows: Float32Array.from(values), size, pooled: false };
  return { rows: options.pooling === 'mean' ? poolMean(vectors) : poolFirst(vectors), size, pooled: true };
}

/** Text in, embeddings out, for encoders of the BERT kind; see `textEmbeddingOptions` for what can be set. */
export const textEmbedding = defineProcessing<unknown, Loaded, Carry, TextEmbeddingOptions>({
  async load({ options, files, signature, maxBatchSize }) {
    const plan = planModel(signature, maxBatchSize, options);
    return { options, plan, tokenizer: await files.tokenizer(options.tokenizer) };
  },
  preprocess(body, { options, plan, tokenizer }) {
    const { texts, single } = readTexts(body, options.textField, plan.texts);
    const padding = plan.fixedTokens > 0 ? { to: plan.fixedTokens } : options.padding;
    const batch = tokenizer.encodeBatch(texts, { maxTokens: plan.maxTokens, overlong: options.overlong, padding });
    return { inputs: modelInputs(plan, batch), carry: { single, mask: batch.mask, tokens: batch.shape[1] } };
  },
  postprocess(outputs, { loaded, carry }) {
    const { options } = loaded;
    const { rows, size, pooled } = readVectors(outputs, loaded, carry);
    if (options.normalize) normalizeRows(rows, size);
    const field = options.outputField ?? (carry.single ? 'embedding' : 'embeddings');
    const layout = { field, single: carry.single, size, encoding: options.encoding };
    return pooled ? writeVectors(rows, layout) : writeTokenVectors(rows, carry, layout);
  },
});
