import { AppError, type ClipOptions, type TensorSpec } from '@perch/contracts';
import type { LoadSetup, TextTokenizer } from '../contract.ts';
import { imageVectorNames } from './image-embedding.ts';
import { checkOtherInputs, type ImageInput, loadImageInput } from './image-input.ts';
import { takesPictures } from './model-input.ts';
import { findOutput } from './model-output.ts';

export interface TextSide {
  ids: TensorSpec;
  /** Absent where the model's signature names none. */
  mask?: TensorSpec;
  output: TensorSpec;
  tokenizer: TextTokenizer;
  /** The model takes exactly so many tokens; 0: any. */
  fixedTokens: number;
  /** Texts of one call of the model. */
  atOnce: number;
}

export interface ImageSide extends ImageInput {
  output: TensorSpec;
}

/** Which encoders the version's model holds: one of them, or both in one graph that wants both filled. */
export interface ClipPlan {
  options: ClipOptions;
  image?: ImageSide;
  text?: TextSide;
}

const textVectorNames = ['text_embeds', 'text_features', 'text_embedding', 'sentence_embedding', 'pooler_output', 'embedding']; // biome-ignore format: one row reads better

const refuse = (message: string): never => {
  throw new AppError('invalid', `processing clip: ${message}`);
};

async function planText(setup: LoadSetup<ClipOptions>, ids: TensorSpec): Promise<TextSide> {
  const { options, signature, maxBatchSize, files } = setup;
  const mask = signature.inputs.find(({ name }) => name === 'attention_mask');
  for (const { name, datatype, shape } of mask ? [ids, mask] : [ids])
    if ((datatype !== 'INT32' && datatype !== 'INT64') || shape.length !== 2)
      refuse(`input "${name}" is ${datatype} [${shape.join(', ')}], wanted INT32 or INT64 [texts, tokens]`);
  const output = findOutput(signature, {
    name: options.textOutput,
    option: 'textOutput',
    usual: textVectorNames,
    builtin: 'clip',
  });
  const tokenizer = await files.tokenizer(options.tokenizer);
  const fixedTokens = Math.max(0, ids.shape[1]!);
  return { ids, ...(mask && { mask }), output, tokenizer, fixedTokens, atOnce: maxBatchSize || 256 };
}

/** Reads from the signature which encoders there are. Throws `invalid` naming the tensor at fault. */
export async function planClip(setup: LoadSetup<ClipOptions>): Promise<ClipPlan> {
  const { options, signature, maxBatchSize } = setup;
  const ids = signature.inputs.find(({ name }) => name === 'input_ids');
  const text = ids && (await planText(setup, ids));
  let image: ImageSide | undefined;
  if (signature.inputs.some(takesPictures)) {
    const input = await loadImageInput(setup);
    const wish = { name: options.output, option: 'output', usual: imageVectorNames, builtin: 'clip' };
    image = { ...input, output: findOutput(signature, wish) };
  }
  if (!image && !text) refuse('the model has neither input_ids nor an input that takes pictures');
  if (image && text && maxBatchSize > 0)
    refuse('a model with both encoders cannot batch: pictures and texts of a request are not equally many; set max_batch_size 0'); // biome-ignore format: one sentence
  const known = [image?.plan.input.name, ids?.name, text?.mask?.name].filter((name) => name !== undefined);
  checkOtherInputs(setup, known, 'clip');
  return { options, ...(image && { image }), ...(text && { text }) };
}
