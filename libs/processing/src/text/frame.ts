import type { PostProcessorJson, TokenizerJson } from './tokenizer-json.ts';

/** A text's place, or special tokens, in what the model reads; `type` is their token type. */
export type FramePiece = { text: 0 | 1; type: number } | { ids: readonly number[]; type: number };

/** What stands around one text and around a pair. */
export interface Frame {
  single: readonly FramePiece[];
  /** Absent where the tokenizer has no way to put two texts together. */
  pair?: readonly FramePiece[];
}

const isText = (piece: FramePiece): piece is { text: 0 | 1; type: number } => 'text' in piece;

export const framePieces = (frame: readonly FramePiece[], specialTokens: boolean): readonly FramePiece[] =>
  specialTokens ? frame : frame.filter(isText);

/** Special tokens of a frame. */
export const frameLength = (frame: readonly FramePiece[]): number =>
  frame.reduce((sum, piece) => sum + (isText(piece) ? 0 : piece.ids.length), 0);

const bare: Frame = {
  single: [{ text: 0, type: 0 }],
  pair: [{ text: 0, type: 0 }, { text: 1, type: 1 }],
}; // biome-ignore format: one row for each form

function fromTemplate({ single = [], pair = [], special_tokens: tokens = {} }: PostProcessorJson): Frame {
  const read = (pieces: typeof single): FramePiece[] =>
    pieces.map((piece) => {
      if ('Sequence' in piece) return { text: piece.Sequence.id === 'A' ? 0 : 1, type: piece.Sequence.type_id };
      const { id, type_id } = piece.SpecialToken;
      const ids = tokens[id]?.ids;
      if (!ids) throw new Error(`post_processor: special token "${id}" has no ids`);
      return { ids, type: type_id };
    });
  const holds = (pieces: readonly FramePiece[], text: 0 | 1) =>
    pieces.some((piece) => isText(piece) && piece.text === text);
  const two = read(pair);
  const one = read(single);
  if (!holds(one, 0)) throw new Error('post_processor: its template for one text leaves the text out');
  return { single: one, ...(holds(two, 0) && holds(two, 1) ? { pair: two } : {}) };
}

function fromMarks({ cls, sep }: PostProcessorJson, between: number, secondType: number): Frame {
  if (!cls || !sep) throw new Error('post_processor: wants cls and sep');
  const mark = (token: [string, number], type: number, count = 1) => ({ ids: Array(count).fill(token[1]), type });
  const first: FramePiece[] = [mark(cls, 0), { text: 0, type: 0 }];
  return {
    single: [...first, mark(sep, 0)],
    pair: [...first, mark(sep, 0, between), { text: 1, type: secondType }, mark(sep, secondType)],
  };
}

/** Reads the post-processor as the reference does. Throws for one that does more than put tokens around texts. */
export function readFrame(post: TokenizerJson['post_processor']): Frame {
  if (!post) return bare;
  switch (post.type) {
    case 'ByteLevel':
      return bare;
    case 'TemplateProcessing':
      return fromTemplate(post);
    case 'BertProcessing':
      return fromMarks(post, 1, 1);
    // Every token of it is of type 0, and two marks stand between the texts.
    case 'RobertaProcessing':
      return fromMarks(post, 2, 0);
    case 'Sequence': {
      const framing = (post.processors ?? []).filter(({ type }) => type !== 'ByteLevel');
      if (framing.length > 1) throw new Error(`post_processor: ${framing.length} of them in a row, wanted one`);
      return readFrame(framing[0]);
    }
    default:
      throw new Error(
        `post_processor ${post.type} is not supported; wanted TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel`,
      );
  }
}
