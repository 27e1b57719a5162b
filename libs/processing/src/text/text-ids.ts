import type { LibraryTokenizer } from './library.ts';
import type { TokenizerJson } from './tokenizer-json.ts';
import { AsciiWordPiece } from './word-piece.ts';

/** A text without enough tokens in its first (or last) million characters is taken to end there. */
const mostCharacters = 2 ** 20;
const leastCharacters = 1024;
/** Tokens at the cut end of a text that do not count; a word of WordPiece has at most 100. */
const cutMargin = 128;

/** Ids of a text without special tokens. */
export class TextIds {
  private readonly library: LibraryTokenizer;
  private readonly fast: AsciiWordPiece | undefined;

  constructor(library: LibraryTokenizer, json: TokenizerJson) {
    this.library = library;
    this.fast = AsciiWordPiece.from(json);
  }

  /** All of them, or more than `enough` from its beginning. */
  fromStart(text: string, enough: number): number[] {
    return this.fast?.encode(text, enough) ?? this.inPieces(text, enough, (length) => text.slice(0, length));
  }

  /** All of them, or more than `enough` up to its end; the last one is the text's last. */
  fromEnd(text: string, enough: number): number[] {
    return this.inPieces(text, enough, (length) => text.slice(-length));
  }

  /**
   * The library reads a text whole, and needs a second for a million characters; so a long text is read from one end
   * until there are enough tokens. The cut changes the tokens of the word there alone, which `cutMargin` drops.
   */
  private inPieces(text: string, enough: number, cut: (length: number) => string): number[] {
    for (let length = leastCharacters + 8 * enough; length < text.length && length < mostCharacters; length *= 4) {
      const ids = this.encode(cut(length));
      if (ids.length > enough + cutMargin) return ids;
    }
    return this.encode(text.length > mostCharacters ? cut(mostCharacters) : text);
  }

  private encode(text: string): number[] {
    return this.library.encode(text, { add_special_tokens: false }).ids;
  }
}
