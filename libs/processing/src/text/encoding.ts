import { AppError } from '@perch/contracts/plain';
import type {
  EncodeOptions,
  Padding,
  TextDecodeOptions,
  TextDecoding,
  TextOrPair,
  TextTokenizer,
  TokenBatch,
} from '../contract.ts';
import { TokenDecoder } from './decoding.ts';
import { type Frame, type FramePiece, frameLength, framePieces, readFrame } from './frame.ts';
import type { LibraryTokenizer } from './library.ts';
import { TextIds } from './text-ids.ts';
import type { TokenizerJson } from './tokenizer-json.ts';
import { planTruncation } from './truncation.plan.ts';

const usualPads = ['[PAD]', '<pad>', '<|endoftext|>', '</s>'];

function findPadId({ padding, added_tokens: added = [] }: TokenizerJson): number {
  if (typeof padding?.pad_id === 'number') return padding.pad_id;
  for (const pad of usualPads) {
    const token = added.find(({ content }) => content === pad);
    if (token) return token.id;
  }
  return 0;
}

const sideOf = (of: { direction?: string } | null | undefined): 'left' | 'right' =>
  of?.direction?.toLowerCase() === 'left' ? 'left' : 'right';

/** Length of every row for texts of the given most tokens. */
function paddedLength(longest: number, padding: Padding): number {
  if (padding === 'longest') return longest;
  if ('to' in padding) return Math.max(longest, padding.to);
  return Math.ceil(longest / padding.multipleOf) * padding.multipleOf;
}

/** Ids of one text or pair, and their token types. */
interface Row {
  ids: Int32Array;
  /** Absent: all of them are 0. */
  types?: Int32Array;
}

interface Slice {
  ids: readonly number[];
  from: number;
  to: number;
}

/** Encodes with the library, cuts between the special tokens, pads to the side that the tokenizer says. */
export class EncodingTokenizer implements TextTokenizer {
  readonly padId: number;
  readonly vocabularySize: number;
  private readonly frame: Frame;
  private readonly sides: { padding: 'left' | 'right'; truncation: 'left' | 'right' };
  private readonly library: LibraryTokenizer;
  private readonly decoder: TokenDecoder;
  private readonly texts: TextIds;

  constructor(library: LibraryTokenizer, json: TokenizerJson) {
    this.library = library;
    this.padId = findPadId(json);
    this.vocabularySize = library.model.vocab.length;
    this.frame = readFrame(json.post_processor);
    this.sides = { padding: sideOf(json.padding), truncation: sideOf(json.truncation) };
    this.decoder = new TokenDecoder(library, json.decoder?.type);
    this.texts = new TextIds(library, json);
  }

  tokenId(token: string): number | undefined {
    return this.library.model.tokens_to_ids.get(token);
  }

  encode(text: TextOrPair, options: EncodeOptions = {}): Int32Array {
    return this.encodeOne(text, options, 'the text').ids;
  }

  encodeBatch(texts: readonly TextOrPair[], options: EncodeOptions = {}): TokenBatch {
    const rows = texts.map((text, i) => this.encodeOne(text, options, texts.length === 1 ? 'the text' : `text ${i}`));
    const longest = rows.reduce((most, { ids }) => Math.max(most, ids.length), 1);
    const length = paddedLength(longest, options.padding ?? 'longest');
    const ids = new Int32Array(rows.length * length);
    const mask = new Int32Array(ids.length);
    const types = new Int32Array(ids.length);
    if (this.padId !== 0) ids.fill(this.padId);
    const left = (options.paddingSide ?? this.sides.padding) === 'left';
    for (const [i, row] of rows.entries()) {
      const from = i * length + (left ? length - row.ids.length : 0);
      ids.set(row.ids, from);
      mask.fill(1, from, from + row.ids.length);
      if (row.types) types.set(row.types, from);
    }
    return { ids, mask, types, shape: [rows.length, length] };
  }

  decode(ids: ArrayLike<number>, options?: TextDecodeOptions): string {
    return this.decoder.decode(ids, options);
  }

  decodeStream(options?: TextDecodeOptions): TextDecoding {
    return this.decoder.stream(options);
  }

  private encodeOne(text: TextOrPair, options: EncodeOptions, thing: string): Row {
    const { maxTokens = 256, specialTokens = true } = options;
    const frame = typeof text === 'string' ? this.frame.single : this.frame.pair;
    if (!frame)
      throw new AppError('invalid', `${thing} is a pair, and this tokenizer has no template for pairs of texts`);
    const pieces = framePieces(frame, specialTokens);
    const room = Math.max(0, maxTokens - frameLength(pieces));
    const bodies = this.bodiesOf(text, room, options);
    const total = bodies.reduce((sum, { length }) => sum + length, 0);
    if (total > room && options.overlong === 'refuse')
      throw new AppError('invalid', `${thing} has more than ${maxTokens} tokens, the most this endpoint takes`);
    return this.assemble(pieces, this.cut(bodies, room, options, thing));
  }

  /** Each text from the end that stays, whole or more than there is room for. */
  private bodiesOf(text: TextOrPair, room: number, options: EncodeOptions): number[][] {
    const left = (options.truncationSide ?? this.sides.truncation) === 'left';
    const read = (part: string, enough: number) =>
      left ? this.texts.fromEnd(part, enough) : this.texts.fromStart(part, enough);
    if (typeof text === 'string') return [read(text, room)];
    const bodies = text.map((part) => read(part, room));
    // Where both are too long for an odd room, the longer one gets the odd token.
    const oddOne = room % 2 === 1 && bodies.every(({ length }) => length > room);
    return oddOne ? text.map((part) => read(part, Number.POSITIVE_INFINITY)) : bodies;
  }

  private cut(bodies: readonly number[][], room: number, options: EncodeOptions, thing: string): Slice[] {
    const left = (options.truncationSide ?? this.sides.truncation) === 'left';
    const lengths = bodies.map(({ length }) => length);
    const { truncation = 'longest-first' } = options;
    const kept =
      lengths.length === 1
        ? [Math.min(lengths[0]!, room)]
        : planTruncation([lengths[0]!, lengths[1]!], room, truncation);
    if (!kept)
      throw new AppError(
        'invalid',
        `${thing} does not fit into ${options.maxTokens ?? 256} tokens by cutting its ${truncation} text alone`,
      );
    return bodies.map((ids, i) => {
      const from = left ? ids.length - kept[i]! : 0;
      return { ids, from, to: from + kept[i]! };
    });
  }

  private assemble(pieces: readonly FramePiece[], bodies: readonly Slice[]): Row {
    let length = frameLength(pieces);
    for (const { from, to } of bodies) length += to - from;
    const ids = new Int32Array(length);
    const types = pieces.some(({ type }) => type !== 0) ? new Int32Array(length) : undefined;
    let at = 0;
    for (const piece of pieces) {
      const start = at;
      const part = 'text' in piece ? bodies[piece.text]! : { ids: piece.ids, from: 0, to: piece.ids.length };
      for (let i = part.from; i < part.to; i++) ids[at++] = part.ids[i]!;
      if (types && piece.type !== 0) types.fill(piece.type, start, at);
    }
    return types ? { ids, types } : { ids };
  }
}
