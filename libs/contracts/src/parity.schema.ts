import { z } from 'zod';
import { AppError } from './error.ts';
import { parseWith } from './parse.ts';

export const maxParityBytes = 4 * 1_048_576;
export const mostParityTexts = 10_000;

const tokenIds = z.array(z.number().int().min(0).max(0x7fffffff)).max(1_000_000);

/** Texts or pairs and their ids, special tokens included, nothing cut; `types` where token types are compared as well. */
export const tokenizerParity = z
  .strictObject({
    /** Which program made it, for people: `tokenizers 0.23.3`. */
    reference: z.string().max(200).optional(),
    texts: z
      .array(
        z.strictObject({
          text: z.union([z.string(), z.tuple([z.string(), z.string()])]),
          ids: tokenIds,
          types: tokenIds.optional(),
        }),
      )
      .min(1)
      .max(mostParityTexts),
  })
  .meta({ id: 'TokenizerParity' });
export type TokenizerParity = z.infer<typeof tokenizerParity>;

/** Throws `invalid` that names the file and what is wrong in it. */
export function parseParity(text: string, path: string): TokenizerParity {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new AppError('invalid', `${path}: is no JSON`);
  }
  return parseWith(tokenizerParity, json, path);
}
