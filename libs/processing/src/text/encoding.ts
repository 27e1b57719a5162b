import { AppError } from '@perch/contracts';
import type { EncodeOptions, Padding, TextTokenizer, TokenBatch } from '../contract.ts';
import { AsciiWordPiece, type WordPieceJson } from './word-piece.ts';

/** What is used of the library's tokenizer (its own types do not resolve under NodeNext). */
export interface LibraryTokenizer {
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
}

/** The fields of a tokenizer.json that are read here. */
export interface TokenizerJson extends WordPieceJson {
  padding?: { pad_id?: number; pad_token?: string } | null;
  added_tokens?: { id: number; content: string; normalized?: boolean }[];
}

/** Special tokens that stand around every single text. */
interface Frame {
  before: number[];
  after: number[];
}

/** A text without enough tokens in its first million characters is taken to end there. */
const mostCharacters = 2 ** 20;
const leastCharacters = 1024;
/** Tokens at the end of a cut text that do not count; a word of WordPiece has at most 100. */
const cutMargin = 128;

const usualPads = ['[PAD]', '<pad>', '<|endoftext|>', '</s>'];

function findPadId({ padding, added_tokens: added = [] }: TokenizerJson): number {
  if (typeof padding?.pad_id === 'number') return padding.pad_id;
  for (const pad of usualPads) {
    const token = added.find(({ content }) => content === pad);
    if (token) return token.id;
  }
  return 0;
}

/** Learned from a sample, so that any post-processor is understood that frames a text with tokens. */
function findFrame(library: LibraryTokenizer): Frame {
  const bare = library.encode('a', { add_special_tokens: false }).ids;
  const framed = library.encode('a', { add_special_tokens: true }).ids;
  for (let at = 0; at + bare.length <= framed.length; at++)
    if (bare.every((id, i) => framed[at + i] === id))
      return { before: framed.slice(0, at), after: framed.slice(at + bare.length) };
  throw new Error('its post-processor changes the tokens of the text');
}

/** Length of every row for texts of the given most tokens. */
function paddedLength(longest: number, padding: Padding): number {
  if (padding === 'longest') return longest;
  if ('to' in padding) return Math.max(longest, padding.to);
  return Math.ceil(longest / padding.multipleOf) * padding.multipleOf;
}

/** Encodes with the library, cuts between the special tokens, pads to the right. */
export class EncodingTokenizer implements TextTokenizer {
  readonly padId: number;
  private readonly frame: Frame;
  private readonly library: LibraryTokenizer;
  private readonly fast: AsciiWordPiece | undefined;

  constructor(library: LibraryTokenizer, json: TokenizerJson) {
    this.library = library;
    this.padId = findPadId(json);
    this.frame = findFrame(library);
    this.fast = AsciiWordPiece.from(json);
  }

  encode(text: string, options: EncodeOptions = {}): Int32Array {
    return this.encodeOne(text, options, 'the text');
  }

  encodeBatch(texts: readonly string[], options: EncodeOptions = {}): TokenBatch {
    const rows = texts.map((text, i) => this.encodeOne(text, options, texts.length === 1 ? 'the text' : `text ${i}`));
    const longest = rows.reduce((most, row) => Math.max(most, row.length), 1);
    const length = paddedLength(longest, options.padding ?? 'longest');
    const ids = new Int32Array(rows.length * length);
    const mask = new Int32Array(ids.length);
    if (this.padId !== 0) ids.fill(this.padId);
    for (const [i, row] of rows.entries()) {
      ids.set(row, i * length);
      mask.fill(1, i * length, i * length + row.length);
    }
    return { ids, mask, shape: [rows.length, length] };
  }

  private encodeOne(
    text: string,
    { maxTokens = 256, overlong = 'truncate' }: EncodeOptions,
    thing: string,
  ): Int32Array {
    const { before, after } = this.frame;
    const room = Math.max(0, maxTokens - before.length - after.length);
    const body = this.fast?.encode(text, room) ?? this.encodeSlowly(text, room);
    if (body.length > room && overlong === 'refuse')
      throw new AppError('invalid', `${thing} has more than ${maxTokens} tokens, the most this endpoint takes`);
    const kept = Math.min(body.length, room);
    const ids = new Int32Array(before.length + kept + after.length);
    ids.set(before, 0);
    for (let i = 0; i < kept; i++) ids[before.length + i] = body[i]!;
    ids.set(after, before.length + kept);
    return ids;
  }

  /**
   * The library reads a text whole, and needs a second for a million characters; so a long text is read from its
   * beginning until there are enough tokens. The cut changes the tokens of the last word alone, which `cutMargin` drops.
   */
  private encodeSlowly(text: string, room: number): number[] {
    for (let length = leastCharacters + 8 * room; length < text.length && length < mostCharacters; length *= 4) {
      const { ids } = this.library.encode(text.slice(0, length), { add_special_tokens: false });
      if (ids.length > room + cutMargin) return ids;
    }
    return this.library.encode(text.slice(0, mostCharacters), { add_special_tokens: false }).ids;
  }
}
