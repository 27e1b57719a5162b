import { AppError, type Tensors, type TextEmbeddingOptions } from '@perch/contracts';
import { defineProcessing, type TextTokenizer } from '../contract.ts';
import { asFloat32 } from '../tensor.ts';
import { readTexts } from '../text/text-body.ts';
import { textTensors } from '../text/text-input.ts';
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
  preprocess(body, { options, plan, tokenizer }, { state }) {
    const { texts, single } = readTexts(body, options.textField, plan.texts);
    const { maxTokens, padding } = plan;
    const batch = tokenizer.encodeBatch(texts, { maxTokens, overlong: options.overlong, padding });
    // there when the request came by a protocol that tells how many tokens it was
    if ('promptTokens' in state) state['promptTokens'] = batch.mask.reduce((sum, one) => sum + one, 0);
    return { inputs: textTensors(plan, batch), carry: { single, mask: batch.mask, tokens: batch.shape[1] } };
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
