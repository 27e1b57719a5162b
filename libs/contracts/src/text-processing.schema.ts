import { z } from 'zod';

const fieldName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/, 'a field is 1 to 64 of A-Z a-z 0-9 _ . -');
const fileName = z.string().min(1).max(512);
export const tokenCount = z.number().int().min(3).max(131_072);

export const textPadding = z.union([
  z.literal('longest'),
  z.strictObject({ to: tokenCount }),
  z.strictObject({ multipleOf: z.number().int().min(1).max(4096) }),
]);

interface TokenLimits {
  maxTokens: number;
  padding: z.output<typeof textPadding>;
}

/** What padding and `maxTokens` want of one another. */
export function checkTokenLimits({ maxTokens, padding }: TokenLimits, ctx: z.core.$RefinementCtx): void {
  const wrong = (field: string, message: string) => ctx.addIssue({ code: 'custom', path: ['padding', field], message });
  if (typeof padding !== 'object') return;
  if ('to' in padding && padding.to < maxTokens)
    wrong('to', `is ${padding.to}, less than maxTokens (${maxTokens}): a text would not fit`);
  if ('multipleOf' in padding && maxTokens % padding.multipleOf !== 0)
    wrong('multipleOf', `is ${padding.multipleOf}, which does not divide maxTokens (${maxTokens})`);
}

const textInput = {
  /** Tokens of one text or pair, special tokens included. */
  maxTokens: tokenCount.default(256),
  /** What happens to a text that has more. */
  overlong: z.enum(['truncate', 'refuse']).default('truncate'),
  /** Which text of a pair is cut: the one that is longer at the time, or always the same one. */
  truncation: z.enum(['longest-first', 'first', 'second']).default('longest-first'),
  padding: textPadding.default('longest'),
  /** Field of the request's body that holds the text or texts; left out: `text`, `inputs` or `input`. */
  textField: fieldName.optional(),
  /** Field that holds the second text of each pair; where a request has none, its texts stand alone. */
  pairField: fieldName.default('text_pair'),
  /** File of the version. */
  tokenizer: fileName.default('tokenizer.json'),
};

/** `text-tokens`: texts become the model's inputs, its outputs are the reply as they are. */
export const textTokensOptions = z
  .strictObject(textInput)
  .superRefine(checkTokenLimits)
  .meta({ id: 'TextTokensOptions' });
export type TextTokensOptions = z.output<typeof textTokensOptions>;

export const textClassificationOptions = z
  .strictObject({
    ...textInput,
    /** So many labels in the reply, the likeliest first. */
    topK: z.number().int().min(1).max(1000).default(5),
    /**
     * What the model's numbers become; `none` for a model that answers probabilities. Left out: `sigmoid` for one class
     * and where config.json says that a text may have several labels, else `softmax`.
     */
    scores: z.enum(['softmax', 'sigmoid', 'none']).optional(),
    /** In the model's order; left out: `id2label` of config.json, else labels.txt of the version, else numbers. */
    labels: z.array(z.string().max(512)).min(1).max(100_000).optional(),
    /** The model's output to read; left out: `logits`, else the only floating one. */
    output: z.string().min(1).max(256).optional(),
  })
  .superRefine(checkTokenLimits)
  .meta({ id: 'TextClassificationOptions' });
export type TextClassificationOptions = z.output<typeof textClassificationOptions>;

const textList = z.union([z.string(), z.array(z.string()).min(1)]);
const second = { text_pair: textList.optional() };
/** One text or a list, in one of three fields; `text_pair` holds the second text of each. */
export const textClassificationRequest = z.union([
  z.looseObject({ text: textList, ...second }),
  z.looseObject({ inputs: textList, ...second }),
  z.looseObject({ input: textList, ...second }),
]);

const labelScore = z.object({ label: z.string(), score: z.number() });
const ranking = labelScore.extend({ scores: z.array(labelScore).min(1) });
/** The likeliest label, and `scores` from the likeliest on; `results` for a list of texts. */
export const textClassificationReply = z.union([ranking, z.looseObject({ results: z.array(ranking) })]);
