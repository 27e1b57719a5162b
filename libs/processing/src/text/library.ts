import { Tokenizer } from '@huggingface/tokenizers';

/** What is used of the library's tokenizer (its own types do not resolve under NodeNext). */
export interface LibraryTokenizer {
  model: { vocab: (string | undefined)[]; tokens_to_ids: Map<string, number> };
  decoder: ((tokens: string[]) => string) | null;
  all_special_ids: number[];
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
}

/** Throws what the library throws for a file that it does not know. */
export const openLibrary = (json: unknown): LibraryTokenizer =>
  new Tokenizer(json as object, {}) as unknown as LibraryTokenizer;
