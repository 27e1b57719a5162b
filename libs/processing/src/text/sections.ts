import { stripLeft, stripRight } from './unicode.ts';

interface AddedToken {
  lstrip: boolean;
  rstrip: boolean;
}

/** What of the library's tokenizer takes part in cutting a text at its added tokens. */
export interface SectionedTokenizer {
  splitter_unnormalized: { split(text: string): string[] };
  splitter_normalized: { split(text: string): string[] };
  added_tokens_map: Map<string, AddedToken>;
  normalizer: ((text: string) => string) | null;
  pre_tokenizer: ((text: string, options: { section_index: number }) => string[]) | null;
  model: (pieces: string[]) => string[];
  encode_text(text: string | null): string[] | null;
}

/** Added tokens take the white space beside them where they say so; what Unicode calls white space, not JavaScript. */
function takeSpace(sections: string[], added: ReadonlyMap<string, AddedToken>): string[] {
  for (const [i, section] of sections.entries()) {
    const token = added.get(section);
    if (token?.lstrip && i > 0) sections[i - 1] = stripRight(sections[i - 1]!);
    if (token?.rstrip && i + 1 < sections.length) sections[i + 1] = stripLeft(sections[i + 1]!);
  }
  return sections;
}

/** The tokens of a text: cut at added tokens, normalised, cut at those that are found after that, split, encoded. */
export function encodeSections(tokenizer: SectionedTokenizer, text: string | null): string[] | null {
  if (text === null) return null;
  const { splitter_unnormalized, splitter_normalized, added_tokens_map: added, normalizer, pre_tokenizer } = tokenizer;
  const sections = takeSpace(splitter_unnormalized.split(text), added);
  return sections.flatMap((section, section_index) => {
    if (added.has(section)) return [section];
    const normalized = normalizer === null ? section : normalizer(section);
    return takeSpace(splitter_normalized.split(normalized), added).flatMap((part) => {
      if (part.length === 0 || added.has(part)) return part.length === 0 ? [] : [part];
      return tokenizer.model(pre_tokenizer === null ? [part] : pre_tokenizer(part, { section_index }));
    });
  });
}
