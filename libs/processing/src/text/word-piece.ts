/** The fields of a tokenizer.json that decide whether the fast path below speaks for it. */
export interface WordPieceJson {
  added_tokens?: { content: string; normalized?: boolean }[];
  normalizer?: { type?: string; lowercase?: boolean; clean_text?: boolean } | null;
  pre_tokenizer?: { type?: string } | null;
  model?: {
    type?: string;
    unk_token?: string;
    continuing_subword_prefix?: string;
    max_input_chars_per_word?: number;
    vocab?: Record<string, number> | unknown[];
  };
}

const letter = 0;
const space = 1;
const punctuation = 2;
const foreign = 3;

/** What BERT's splitter takes each ASCII character for; control characters are left to the library. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code === 32 || code === 9 || code === 10 || code === 13) return space;
  if (code < 32 || code === 127) return foreign;
  return /[A-Za-z0-9]/.test(String.fromCharCode(code)) ? letter : punctuation;
});

interface Vocabulary {
  /** Pieces that start a word, and pieces that go on (without their prefix). */
  first: Map<string, number>;
  next: Map<string, number>;
  unknown: number;
  longestWord: number;
  longestPiece: number;
}

function readVocabulary(model: NonNullable<WordPieceJson['model']>): Vocabulary | undefined {
  const {
    vocab,
    unk_token = '[UNK]',
    continuing_subword_prefix: prefix = '##',
    max_input_chars_per_word: most = 100,
  } = model;
  if (!vocab || Array.isArray(vocab) || prefix.length === 0) return undefined;
  const first = new Map<string, number>();
  const next = new Map<string, number>();
  let longestPiece = 1;
  for (const piece in vocab) {
    const id = vocab[piece]!;
    longestPiece = Math.max(longestPiece, piece.length);
    if (piece.startsWith(prefix)) next.set(piece.slice(prefix.length), id);
    else first.set(piece, id);
  }
  const unknown = first.get(unk_token);
  return unknown === undefined ? undefined : { first, next, unknown, longestWord: most, longestPiece };
}

/**
 * BERT's tokenizer for ASCII text, about five times as fast as the library and able to stop early. It answers undefined
 * wherever it is not sure to agree with the library; a differential test holds the two together.
 */
export class AsciiWordPiece {
  private readonly vocabulary: Vocabulary;
  private readonly lowercase: boolean;
  private readonly added: string[];
  /** 1 for each character that an added token starts with. */
  private readonly addedStarts = new Uint8Array(128);

  private constructor(vocabulary: Vocabulary, lowercase: boolean, added: string[]) {
    this.vocabulary = vocabulary;
    this.lowercase = lowercase;
    this.added = added;
    for (const token of added) if (token.charCodeAt(0) < 128) this.addedStarts[token.charCodeAt(0)] = 1;
  }

  /** Undefined where the tokenizer.json is of another kind. */
  static from({
    added_tokens: added = [],
    normalizer,
    pre_tokenizer,
    model,
  }: WordPieceJson): AsciiWordPiece | undefined {
    const bert =
      model?.type === 'WordPiece' &&
      normalizer?.type === 'BertNormalizer' &&
      pre_tokenizer?.type === 'BertPreTokenizer';
    if (!bert || normalizer.clean_text === false || added.some(({ normalized }) => normalized !== false))
      return undefined;
    const vocabulary = readVocabulary(model);
    const contents = added.map(({ content }) => content);
    // Only at punctuation is it looked whether an added token begins.
    if (contents.some((content) => kinds[content.charCodeAt(0)] === letter)) return undefined;
    return vocabulary && new AsciiWordPiece(vocabulary, normalizer.lowercase !== false, contents);
  }

  /** Ids without special tokens; stops once there are more than `enough`. Undefined: ask the library. */
  encode(text: string, enough: number): number[] | undefined {
    const ids: number[] = [];
    let from = 0;
    let checked = false;
    for (let at = 0; at <= text.length; at++) {
      const code = at < text.length ? text.charCodeAt(at) : 32;
      const kind = code < 128 ? kinds[code]! : foreign;
      if (kind === letter) continue;
      if (kind === foreign) return undefined;
      if (at > from) this.pushWord(text.slice(from, at), ids);
      from = at + 1;
      if (kind === punctuation) {
        if (this.addedStarts[code] === 1 && !checked) {
          if (this.holdsAdded(text)) return undefined;
          checked = true;
        }
        ids.push(this.vocabulary.first.get(text[at]!) ?? this.vocabulary.unknown);
      }
      if (ids.length > enough) break;
    }
    return ids;
  }

  private holdsAdded(text: string): boolean {
    return this.added.some((token) => text.includes(token));
  }

  private pushWord(given: string, ids: number[]): void {
    const word = this.lowercase ? given.toLowerCase() : given;
    const { first, unknown, longestWord } = this.vocabulary;
    const whole = first.get(word);
    if (word.length > longestWord) ids.push(unknown);
    else if (whole !== undefined) ids.push(whole);
    else this.pushPieces(word, ids);
  }

  /** Longest piece first, from the left; a word that cannot be cut up whole is unknown. */
  private pushPieces(word: string, ids: number[]): void {
    const { first, next, unknown, longestPiece } = this.vocabulary;
    const before = ids.length;
    for (let from = 0; from < word.length; ) {
      const pieces = from === 0 ? first : next;
      let end = Math.min(word.length, from + longestPiece);
      let id = pieces.get(word.slice(from, end));
      while (id === undefined && --end > from) id = pieces.get(word.slice(from, end));
      if (id === undefined) {
        ids.length = before;
        ids.push(unknown);
        return;
      }
      ids.push(id);
      from = end;
    }
  }
}
