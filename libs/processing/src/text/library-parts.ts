import * as library from '@huggingface/tokenizers';

/** Parts of the library that are used alone (its own types do not resolve under NodeNext). */
interface LibraryParts {
  ReplaceNormalizer: new (json: object) => { normalize(text: string): string };
  /** `pattern`: its expression rewritten for this runtime; null where the json has none. */
  SplitPreTokenizer: new (
    json: object,
  ) => { pattern: RegExp | null };
}

export const { ReplaceNormalizer, SplitPreTokenizer } = library as unknown as LibraryParts;
