import { z } from 'zod';
import { AppError } from './error.ts';
import { textGenerationOptions } from './generation.schema.ts';
import { clipOptions, imageClassificationOptions, imageEmbeddingOptions } from './image-processing.schema.ts';
import { parseWith } from './parse.ts';
import {
  checkTokenLimits,
  textClassificationOptions,
  textPadding,
  textTokensOptions,
  tokenCount,
} from './text-processing.schema.ts';

const fieldName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/, 'a field is 1 to 64 of A-Z a-z 0-9 _ . -');

/** `passthrough` has no options: tensors in, tensors out. */
export const passthroughOptions = z.strictObject({}).meta({ id: 'PassthroughOptions' });
export type PassthroughOptions = z.output<typeof passthroughOptions>;

export const textEmbeddingOptions = z
  .strictObject({
    /** Tokens of one text, special tokens included. */
    maxTokens: tokenCount.default(256),
    /** What happens to a text that has more. */
    overlong: z.enum(['truncate', 'refuse']).default('truncate'),
    padding: textPadding.default('longest'),
    /** How token vectors become one; `none` answers all of them. A model that pools by itself is left alone. */
    pooling: z.enum(['mean', 'cls', 'none']).default('mean'),
    /** Scale each vector to length 1. */
    normalize: z.boolean().default(true),
    /** `base64`: little-endian float32. */
    encoding: z.enum(['float', 'base64']).default('float'),
    /** Field of the request's body that holds the text or texts; left out: `text`, `inputs` or `input`. */
    textField: fieldName.optional(),
    /** Field of the reply; left out: `embedding` for one text, `embeddings` for a list. */
    outputField: fieldName.optional(),
    /** File of the version. */
    tokenizer: z.string().min(1).max(512).default('tokenizer.json'),
    /** The model's output to read; left out: the only floating-point one, else `last_hidden_state`. */
    output: z.string().min(1).max(256).optional(),
  })
  .superRefine((value, ctx) => {
    checkTokenLimits(value, ctx);
    if (value.pooling === 'none' && value.encoding === 'base64')
      ctx.addIssue({ code: 'custom', path: ['encoding'], message: 'base64 wants pooling mean or cls' });
  })
  .meta({ id: 'TextEmbeddingOptions' });
export type TextEmbeddingOptions = z.output<typeof textEmbeddingOptions>;

/** Options of each built-in processing module. */
export const builtinOptions = {
  passthrough: passthroughOptions,
  'text-tokens': textTokensOptions,
  'text-embedding': textEmbeddingOptions,
  'text-classification': textClassificationOptions,
  'text-generation': textGenerationOptions,
  'image-classification': imageClassificationOptions,
  'image-embedding': imageEmbeddingOptions,
  clip: clipOptions,
} as const;
export type BuiltinName = keyof typeof builtinOptions;

const isBuiltin = (name: string): name is BuiltinName => Object.hasOwn(builtinOptions, name);

/** Checks the name of a built-in and its options, and fills in the defaults. Throws `invalid`, naming the field. */
export function parseBuiltinOptions(builtin: string, options: unknown = {}): Record<string, unknown> {
  if (!isBuiltin(builtin))
    throw new AppError(
      'invalid',
      `processing.builtin: there is no built-in "${builtin}"; there are ${Object.keys(builtinOptions).join(', ')}`,
    );
  return parseWith(builtinOptions[builtin], options, `processing.options of ${builtin}`);
}
